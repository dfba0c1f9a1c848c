import type { KubeObject, ResourceApi, ResourceRef } from "@holdfast/embedded-cluster/testing";
import { objectNames } from "./object-names.ts";

interface Change {
  readonly revision: number;
  /** Undefined: gone. */
  readonly object: KubeObject | undefined;
  readonly name: string;
}

/** A Sandbox and its live facts as they stood after one change. */
export interface Moment {
  readonly revision: number;
  readonly sandbox: KubeObject | undefined;
  /** Pods that its uid owns. */
  readonly pods: readonly KubeObject[];
}

/** Everything that became of one Sandbox name and its pods, as the server's own log tells it. */
export class History {
  readonly #sandboxes: Change[] = [];
  readonly #pods: Change[] = [];
  readonly #stopping = new AbortController();
  readonly #name: string;
  #moments: Moment[] | undefined;

  constructor(name: string) {
    this.#name = name;
  }

  follow(api: ResourceApi, from: string): void {
    void this.#follow(api, objectNames.sandboxes, from, this.#sandboxes);
    void this.#follow(api, objectNames.pods, from, this.#pods);
  }

  stop(): void {
    this.#stopping.abort();
  }

  /** The moments from one revision to another, both included; the first is what stood at `from`. */
  between(from: number, to: number): readonly Moment[] {
    const moments = this.#all();
    const first = moments.findLastIndex(({ revision }) => revision <= from);
    return moments.slice(Math.max(0, first)).filter(({ revision }, at) => at === 0 || revision <= to);
  }

  /** Whether the log has told of a pod of this name. */
  knows(podName: string): boolean {
    return this.#pods.some(({ name }) => name === podName);
  }

  /** The last version of which anything is known here. */
  get revision(): number {
    return this.#all().at(-1)?.revision ?? 0;
  }

  /** What stood at a revision. */
  at(revision: number): Moment {
    const [moment] = this.between(revision, revision);
    return moment ?? nothing;
  }

  /** A pod by its uid, whoever owns it; undefined once it is gone. */
  podNow(uid: string): KubeObject | undefined {
    const last = this.#pods.findLast(({ object }) => object?.metadata.uid === uid);
    if (!last) return undefined;
    return this.#pods.findLast(({ name }) => name === last.name)?.object?.metadata.uid === uid
      ? last.object
      : undefined;
  }

  now(): Moment {
    return this.#all().at(-1) ?? nothing;
  }

  all(): readonly Moment[] {
    return this.#all();
  }

  #all(): Moment[] {
    this.#moments ??= this.#fold();
    return this.#moments;
  }

  #fold(): Moment[] {
    const changes = [
      ...this.#sandboxes.map((change) => ({ ...change, kind: "sandbox" as const })),
      ...this.#pods.map((change) => ({ ...change, kind: "pod" as const })),
    ].sort((a, b) => a.revision - b.revision);
    const moments: Moment[] = [nothing];
    let sandbox: KubeObject | undefined;
    const pods = new Map<string, KubeObject>();
    for (const change of changes) {
      if (change.kind === "sandbox") {
        if (change.name !== this.#name) continue;
        sandbox = change.object;
      } else if (change.object) pods.set(change.name, change.object);
      else pods.delete(change.name);
      const owned = [...pods.values()].filter((pod) => isOwnedBy(pod, sandbox?.metadata.uid));
      moments.push({ revision: change.revision, sandbox, pods: owned });
    }
    return moments;
  }

  async #follow(api: ResourceApi, resource: ResourceRef, from: string, into: Change[]): Promise<void> {
    for await (const { type, object } of api.watch(resource, from, this.#stopping.signal, "default")) {
      if (type === "BOOKMARK") continue;
      const revision = Number(object.metadata.resourceVersion);
      into.push({ revision, name: object.metadata.name, object: type === "DELETED" ? undefined : object });
      this.#moments = undefined;
    }
  }
}

const nothing: Moment = { revision: 0, sandbox: undefined, pods: [] };

function isOwnedBy(pod: KubeObject, uid: string | undefined): boolean {
  return uid !== undefined && (pod.metadata.ownerReferences ?? []).some((owner) => owner.uid === uid);
}
