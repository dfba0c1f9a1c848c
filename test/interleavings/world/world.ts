import { sandboxNameOf } from "@holdfast/contract";
import type { WorkspaceRegistry } from "@holdfast/control-plane";
import {
  type KubeObject,
  type MemoryCluster,
  type ResourceApi,
  startMemoryCluster,
} from "@holdfast/embedded-cluster/testing";
import { workspaceId } from "@holdfast/testkit";
import type { CallHost } from "../callers.ts";
import type { ForeignHost } from "../foreign.ts";
import type { Judged } from "../judge/judged.ts";
import type { Answered, SentRequest } from "./api-transport.ts";
import { type CallRecord, currentCall } from "./calls.ts";
import { addressOf, containerRestartsOf, hasEnded } from "./facts.ts";
import { History } from "./history.ts";
import { Meanwhile } from "./meanwhile.ts";
import { ModelGuests } from "./model-guests.ts";
import { Replica } from "./replica.ts";
import { SeenStates } from "./seen-states.ts";
import { SlowAnswers } from "./slow-answers.ts";
import { SteppedClock } from "./stepped-clock.ts";
import { WriteLog } from "./write-log.ts";

export const workspace = workspaceId("demo");
export const sandboxName = sandboxNameOf(workspace);

/** A cluster, its guests and some replicas of the service, in this process and on one clock. */
export class World implements CallHost, ForeignHost, Judged {
  readonly sandboxName = sandboxName;
  readonly revisionSlack = 0;
  readonly workspace = workspace;
  /** As the model of the guest knows it. */
  readonly longCommand = { command: "long", args: [] };
  readonly clock: SteppedClock;
  readonly cluster: MemoryCluster;
  readonly history = new History(sandboxName);
  readonly guests: ModelGuests;
  readonly writes = new WriteLog();
  readonly states: SeenStates;
  readonly slowAnswers: SlowAnswers;
  readonly meanwhile = new Meanwhile();
  /** Told of each answer that a replica got, and for whose call. */
  onAnswered: (call: CallRecord | undefined) => void = () => undefined;
  readonly calls: CallRecord[] = [];
  readonly replicas: Replica[] = [];
  readonly #tell: (world: World, text: string) => void;
  /** Disks that somebody took away. */
  lostClaims = 0;
  #marks = 0;
  #order = 0;

  private constructor(cluster: MemoryCluster, clock: SteppedClock, tell: (world: World, text: string) => void) {
    this.cluster = cluster;
    this.clock = clock;
    this.#tell = tell;
    this.states = new SeenStates();
    this.slowAnswers = new SlowAnswers(clock);
    this.history.follow(cluster.api("witness"), String(cluster.revision));
    this.guests = new ModelGuests(
      {
        addressOf: (uid) => this.#runningAddress(uid),
        restartsOf: (uid) => {
          const pod = this.history.podNow(uid);
          return pod ? containerRestartsOf(pod) : 0;
        },
        isCut: (address) => cluster.node.isCut(address),
        podOf: (uid) => this.history.podNow(uid),
        order: () => this.nextOrder(),
      },
      clock,
    );
  }

  /** @param tell told of what happens, for people. */
  static async start(tell: (world: World, text: string) => void = () => undefined): Promise<World> {
    const started: { cluster?: MemoryCluster; world?: World } = {};
    const clock = new SteppedClock(async () => {
      await started.cluster?.settle();
      started.world?.look();
    });
    started.cluster = await startMemoryCluster({ clock });
    const world = new World(started.cluster, clock, tell);
    started.world = world;
    world.replicas.push(world.#replica(0), world.#replica(1));
    return world;
  }

  /** Takes in what each replica says of the workspace by now. */
  look(): void {
    for (const { number, registry } of this.replicas) {
      this.states.seen(number, registry.stateOf(workspace) ?? "none", this.cluster.revision);
    }
  }

  get somebody(): ResourceApi {
    return this.cluster.api("somebody");
  }

  get node(): MemoryCluster["node"] {
    return this.cluster.node;
  }

  now(): number {
    return this.clock.now();
  }

  registryOf(replica: number): WorkspaceRegistry {
    const { registry } = this.replicas[replica] ?? {};
    if (!registry) throw new RangeError(`there is no replica ${replica}`);
    return registry;
  }

  revision(): number {
    return this.cluster.revision;
  }

  later(ms: number, run: () => void): void {
    this.clock.schedule(ms, run);
  }

  answered(): void {}

  tell(text: string): void {
    this.#tell(this, text);
  }

  /** Of what happens, one after another. */
  nextOrder(): number {
    this.#order += 1;
    return this.#order;
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
    const sentAt = new WeakMap<SentRequest, number>();
    this.states.begin(number);
    const witness = {
      sent: (request: SentRequest) => {
        sentAt.set(request, cluster.revision);
        this.writes.sent(request, number, cluster.revision);
        this.states.asked(number, cluster.revision);
      },
      answered: (request: SentRequest, answer: Answered) => {
        const object = answer.t === "ok" ? (answer.body as KubeObject) : undefined;
        this.writes.answered(request, answer.t, sentAt.get(request) ?? 0, object);
        this.look();
        this.onAnswered(currentCall());
        const how = answer.t === "ok" ? "ok" : `${answer.t}: ${answer.why}`;
        const mark = this.writes.writes.findLast((write) => write.request === request)?.writtenBy ?? "";
        this.tell(`r${number} call ${currentCall()?.id} ${request.method} ${request.plural} ${mark} -> ${how}`);
      },
      before: (request: SentRequest) => this.meanwhile.before(number, request),
      delayOf: (request: SentRequest) => this.slowAnswers.delayOf(number, request),
    };
    const randomId = (): string => {
      this.#marks += 1;
      return `mark-${this.#marks}`;
    };
    return new Replica(number, cluster.api(by), this.guests, this.clock, witness, randomId);
  }

  #runningAddress(uid: string): string | undefined {
    const pod = this.history.podNow(uid);
    if (pod === undefined || hasEnded(pod)) return undefined;
    const address = addressOf(pod);
    return typeof address === "string" ? address : undefined;
  }
}
