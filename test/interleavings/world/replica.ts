import type { Clock } from "@holdfast/async";
import type { WorkspaceId } from "@holdfast/contract";
import { Watching, type WorkspaceRegistry } from "@holdfast/control-plane";
import type { ResourceApi } from "@holdfast/embedded-cluster/testing";
import { KubeCluster } from "@holdfast/kube";
import type { WorkspaceDeps } from "@holdfast/workspace";
import { MemoryTransport, type TransportWitness } from "./api-transport.ts";
import type { ModelGuests } from "./model-guests.ts";

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined, debug: () => undefined };

/** One process of the service: its registry over the product's own client. Killed, it does nothing more; what it sent may still land. */
export class Replica {
  readonly number: number;
  readonly registry: WorkspaceRegistry;
  readonly #cluster: KubeCluster;
  readonly #watching: Watching;
  #isAlive = true;

  constructor(
    number: number,
    api: ResourceApi,
    guests: ModelGuests,
    clock: Clock,
    witness: TransportWitness,
    randomId: () => string,
  ) {
    this.number = number;
    this.#cluster = new KubeCluster(new MemoryTransport(api, witness), { disk: "filesystem", clock, log: silent });
    const deps: WorkspaceDeps = {
      cluster: this.#cluster,
      guests: guests.dialler(() => this.#isAlive),
      clock,
      randomId,
      policy: {
        defaultTemplate: "default",
        disk: "filesystem",
        probe: "refuse",
        ingress: "unverified",
        runtimeClassName: undefined,
      },
      log: silent,
    };
    this.#watching = new Watching(deps);
    this.registry = this.#watching.registry;
  }

  /** In the words of the state table; "none" where it is not open here. */
  stateOf(id: WorkspaceId): string {
    return this.registry.stateOf(id) ?? "none";
  }

  get isAlive(): boolean {
    return this.#isAlive;
  }

  kill(): void {
    this.#isAlive = false;
    this.#watching.close();
    void this.#cluster.close();
  }
}
