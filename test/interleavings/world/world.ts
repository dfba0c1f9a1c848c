import { sandboxNameOf } from "@holdfast/contract";
import { type MemoryCluster, startMemoryCluster } from "@holdfast/embedded-cluster/testing";
import { workspaceId } from "@holdfast/testkit";
import type { SentRequest } from "./api-transport.ts";
import { type CallRecord, currentCall } from "./calls.ts";
import { addressOf, containerRestartsOf, hasEnded } from "./facts.ts";
import { History } from "./history.ts";
import { ModelGuests } from "./model-guests.ts";
import { Replica } from "./replica.ts";
import { SteppedClock } from "./stepped-clock.ts";
import { WriteLog } from "./write-log.ts";

export const workspace = workspaceId("demo");
export const sandboxName = sandboxNameOf(workspace);

/** A cluster, its guests and some replicas of the service, in this process and on one clock. */
export class World {
  readonly clock: SteppedClock;
  readonly cluster: MemoryCluster;
  readonly history = new History(sandboxName);
  readonly guests: ModelGuests;
  readonly writes = new WriteLog();
  readonly calls: CallRecord[] = [];
  readonly replicas: Replica[] = [];
  readonly #tell: (world: World, text: string) => void;
  #marks = 0;

  private constructor(cluster: MemoryCluster, clock: SteppedClock, tell: (world: World, text: string) => void) {
    this.cluster = cluster;
    this.clock = clock;
    this.#tell = tell;
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

  /** @param tell told of what happens, for people. */
  static async start(tell: (world: World, text: string) => void = () => undefined): Promise<World> {
    const started: { cluster?: MemoryCluster } = {};
    const clock = new SteppedClock(async () => await started.cluster?.settle());
    started.cluster = await startMemoryCluster({ clock });
    const world = new World(started.cluster, clock, tell);
    world.replicas.push(world.#replica(0), world.#replica(1));
    return world;
  }

  tell(text: string): void {
    this.#tell(this, text);
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
      sent: (request: SentRequest) => this.writes.note(request, number, cluster.revision),
      answered: (request: SentRequest, how: string) => {
        const { writtenBy, call } = this.writes.ofRequest(request) ?? {};
        this.tell(
          `r${number} call ${call?.id ?? currentCall()?.id} ${request.method} ${request.plural} ${writtenBy ?? ""} -> ${how}`,
        );
      },
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
