import { sandboxNameOf } from "@holdfast/contract";
import { type MemoryCluster, startMemoryCluster } from "@holdfast/embedded-cluster/testing";
import { workspaceId } from "@holdfast/testkit";
import type { CallRecord } from "./calls.ts";
import { addressOf, containerRestartsOf, hasEnded } from "./facts.ts";
import { History } from "./history.ts";
import { ModelGuests } from "./model-guests.ts";
import { Replica } from "./replica.ts";
import { SteppedClock } from "./stepped-clock.ts";
import { WriteLog } from "./write-log.ts";

export const workspace = workspaceId("demo");
export const sandboxName = sandboxNameOf(workspace);

/** Takes a guard out of what is sent; for checking the check. */
export type PatchMutation = (operations: readonly unknown[]) => readonly unknown[];

/** A cluster, its guests and some replicas of the service, in this process and on one clock. */
export class World {
  readonly clock: SteppedClock;
  readonly cluster: MemoryCluster;
  readonly history = new History(sandboxName);
  readonly guests: ModelGuests;
  readonly writes = new WriteLog();
  readonly calls: CallRecord[] = [];
  readonly replicas: Replica[] = [];
  readonly #mutation: PatchMutation | undefined;
  #marks = 0;

  private constructor(cluster: MemoryCluster, clock: SteppedClock, mutation: PatchMutation | undefined) {
    this.cluster = cluster;
    this.clock = clock;
    this.#mutation = mutation;
    this.history.follow(cluster.api("witness"), String(cluster.revision));
    this.guests = new ModelGuests(
      {
        addressOf: (uid) => this.#runningAddress(uid),
        restartsOf: (uid) => {
          const pod = this.history.now().pods.find(({ metadata }) => metadata.uid === uid);
          return pod ? containerRestartsOf(pod) : 0;
        },
        isCut: (address) => cluster.node.isCut(address),
        revision: () => cluster.revision,
      },
      clock,
    );
  }

  static async start(mutation?: PatchMutation): Promise<World> {
    const started: { cluster?: MemoryCluster } = {};
    const clock = new SteppedClock(async () => await started.cluster?.settle());
    started.cluster = await startMemoryCluster({ clock });
    const world = new World(started.cluster, clock, mutation);
    world.replicas.push(world.#replica(0), world.#replica(1));
    return world;
  }

  /** Ends a replica as a kill does, and starts another in its place. */
  restart(number: number): void {
    this.replicas[number]?.kill();
    for (const call of this.calls) {
      if (call.replica === number && call.answer === undefined) call.isAbandoned = true;
    }
    this.replicas[number] = this.#replica(number);
  }

  async stop(): Promise<void> {
    for (const replica of this.replicas) replica.kill();
    this.history.stop();
    await this.cluster.stop();
  }

  #replica(number: number): Replica {
    const by = `replica-${number}`;
    const { cluster } = this;
    const witness = {
      sent: (request: Parameters<WriteLog["note"]>[0]) => this.writes.note(request, number, cluster.revision),
      ...(this.#mutation === undefined ? {} : { patchOf: this.#mutation }),
    };
    const randomId = (): string => {
      this.#marks += 1;
      return `mark-${this.#marks}`;
    };
    return new Replica(number, cluster.api(by), this.guests, this.clock, witness, randomId);
  }

  #runningAddress(uid: string): string | undefined {
    const pod = this.history.now().pods.find(({ metadata }) => metadata.uid === uid);
    if (pod === undefined || hasEnded(pod)) return undefined;
    const address = addressOf(pod);
    return typeof address === "string" ? address : undefined;
  }
}
