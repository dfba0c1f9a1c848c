import type { Deadline } from "@holdfast/async";
import { type BootId, bootIdOf, type HolderEpoch, holderEpochFrom, type PodUid, type Reason } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import {
  type CancelOrder,
  type ExecutionEvent,
  type ExecutionWish,
  type Guest,
  type GuestAddress,
  type GuestDialler,
  type GuestFiles,
  type GuestHealth,
  GuestNotReached,
  type QuiesceOrder,
  type QuiesceResult,
} from "@holdfast/workspace";
import { FakeExecutions } from "./fake-executions.ts";
import { FakeFiles, filesReachedBy } from "./fake-files.ts";
import { FakeSessions, refusePort } from "./fake-sessions.ts";

/** What an agent in a pod answers. Change it to make the agent misbehave. */
export interface AgentScript {
  /** Thrown before anything is sent, while set. */
  unreached: GuestNotReached["why"] | undefined;
  /** What it was fenced with: calls that change something are judged by it. */
  holderEpoch: HolderEpoch;
  probe: (within: Deadline) => Promise<string>;
  health: (within: Deadline, what?: { readonly use: boolean }) => Promise<GuestHealth>;
  execute: (wish: ExecutionWish, signal: AbortSignal) => AsyncIterable<ExecutionEvent>;
  files: GuestFiles;
  cancel: (order: CancelOrder, within: Deadline) => Promise<{ readonly alreadyEnded: boolean }>;
  fence: (epoch: HolderEpoch, within: Deadline) => Promise<void>;
  quiesce: (order: QuiesceOrder, within: Deadline) => Promise<QuiesceResult>;
  releaseQuiesce: (holdId: string) => Promise<void>;
  flush: (timeoutMs: number, within: Deadline) => Promise<{ readonly tookMs: number }>;
  releaseSessions: () => Promise<void>;
}

export type GuestVerb =
  | "probe"
  | "health"
  | "execute"
  | "files"
  | "cancel"
  | "fence"
  | "quiesce"
  | "releaseQuiesce"
  | "flush"
  | "releaseSessions";

/** What the fake needs to know of the cluster: an agent runs only in a pod that does. */
export interface RunningPods {
  podOf(uid: PodUid): { readonly ip: string | undefined; readonly ready: boolean } | undefined;
}

/** What an agent announces that serves everything that the fake does but quiesce and flush. */
const features = ["execution-control", "executions", "files", "holder-epoch", "probe"] as const;

/** The status of a process without privileges. */
export const deprivileged = [
  "Name:\tcat",
  "Uid:\t1001\t1001\t1001\t1001",
  "NoNewPrivs:\t1",
  ...["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"].map((name) => `${name}:\t0000000000000000`),
].join("\n");

/** The guest port in memory: one scripted agent per pod. */
export class FakeGuests implements GuestDialler {
  /** Every call, in the order they came, with the pod whose token it carried. */
  readonly calls: { readonly verb: GuestVerb; readonly pod: PodUid; readonly epoch?: HolderEpoch }[] = [];
  /** Clients that were closed. */
  readonly closed: PodUid[] = [];
  /** Applied to the script of each agent when it is first dialled. */
  shape: (script: AgentScript, pod: PodUid) => void = () => undefined;
  readonly #pods: RunningPods;
  readonly #agents = new Map<PodUid, AgentScript>();

  constructor(pods: RunningPods) {
    this.#pods = pods;
  }

  guest(address: GuestAddress): Guest {
    return new FakeGuest(address, this);
  }

  /** The agent in this pod. */
  agent(pod: PodUid): AgentScript {
    const known = this.#agents.get(pod);
    if (known) return known;
    const script = willing(bootIdOf(`boot-of-${pod}`));
    this.shape(script, pod);
    this.#agents.set(pod, script);
    return script;
  }

  count(verb: GuestVerb): number {
    return this.calls.filter((call) => call.verb === verb).length;
  }

  /** For the client: the agent that a call reaches, or why it reaches none, or is refused by its fence (G5a). */
  reach(verb: GuestVerb, address: GuestAddress, epoch: HolderEpoch | undefined, changes: boolean): AgentScript {
    this.calls.push({ verb, pod: address.podUid, ...(epoch === undefined ? {} : { epoch }) });
    const pod = this.#pods.podOf(address.podUid);
    const isThere = pod?.ip === address.host || address.host.endsWith(".svc.cluster.local");
    if (!pod || !isThere) throw new GuestNotReached("no-connection", "connect ECONNREFUSED");
    const agent = this.agent(address.podUid);
    if (agent.unreached) throw new GuestNotReached(agent.unreached, agent.unreached);
    if (changes) assertFenceLets(agent.holderEpoch, epoch);
    return agent;
  }
}

class FakeGuest implements Guest {
  readonly address: GuestAddress;
  readonly sessions = new FakeSessions();
  readonly connectPort = refusePort;
  readonly files: GuestFiles;
  readonly executions = new FakeExecutions();
  readonly #guests: FakeGuests;
  readonly #epoch: HolderEpoch | undefined;
  /** Shared by the views of one guest. */
  readonly #life: { isClosed: boolean };

  constructor(address: GuestAddress, guests: FakeGuests, epoch?: HolderEpoch, life = { isClosed: false }) {
    this.address = address;
    this.#guests = guests;
    this.#epoch = epoch;
    this.#life = life;
    this.executions.cancel = async (order: CancelOrder, within: Deadline) => {
      within.throwIfOver();
      return await this.#reach("cancel").cancel(order, within);
    };
    this.files = filesReachedBy((changes) => this.#reach("files", changes).files);
  }

  under(epoch: HolderEpoch | undefined): Guest {
    return new FakeGuest(this.address, this.#guests, epoch, this.#life);
  }

  async fence(epoch: HolderEpoch, within: Deadline): Promise<void> {
    within.throwIfOver();
    await this.#reach("fence").fence(epoch, within);
  }

  async quiesce(order: QuiesceOrder, within: Deadline): Promise<QuiesceResult> {
    within.throwIfOver();
    return await this.#reach("quiesce").quiesce(order, within);
  }

  async releaseQuiesce(holdId: string, within: Deadline): Promise<void> {
    within.throwIfOver();
    await this.#reach("releaseQuiesce").releaseQuiesce(holdId);
  }

  async flush(timeoutMs: number, within: Deadline): Promise<{ readonly tookMs: number }> {
    within.throwIfOver();
    return await this.#reach("flush").flush(timeoutMs, within);
  }

  async releaseSessions(): Promise<void> {
    await this.#reach("releaseSessions").releaseSessions();
  }

  async probe(within: Deadline): Promise<string> {
    within.throwIfOver();
    return await this.#reach("probe").probe(within);
  }

  async health(within: Deadline, what?: { readonly use: boolean }): Promise<GuestHealth> {
    within.throwIfOver();
    return await this.#reach("health").health(within, what);
  }

  async *execute(wish: ExecutionWish, signal: AbortSignal): AsyncGenerator<ExecutionEvent> {
    signal.throwIfAborted();
    yield* this.#reach("execute").execute(wish, signal);
  }

  retire(): void {}

  close(): void {
    this.#life.isClosed = true;
    this.#guests.closed.push(this.address.podUid);
  }

  #reach(verb: GuestVerb, changes = !readers.has(verb)): AgentScript {
    if (this.#life.isClosed) throw new GuestNotReached("no-connection", "the client is closed");
    return this.#guests.reach(verb, this.address, this.#epoch, changes);
  }
}

const readers: ReadonlySet<GuestVerb> = new Set(["probe", "health", "fence", "releaseSessions"]);

function assertFenceLets(stored: HolderEpoch, epoch: HolderEpoch | undefined): void {
  if (epoch === stored || (epoch === undefined && stored === 0)) return;
  if (epoch === undefined) throw answer("HOLDER_EPOCH_REQUIRED", stored);
  throw answer(epoch < stored ? "HOLDER_EPOCH_SUPERSEDED" : "HOLDER_EPOCH_NOT_TAKEN", stored);
}

function answer(reason: Reason, stored: HolderEpoch): HoldfastError {
  return new HoldfastError(reason, {
    message: `${reason}, says the fake guest.`,
    metadata: { stored: String(stored) },
  });
}

function willing(bootId: BootId): AgentScript {
  const script: AgentScript = {
    unreached: undefined,
    holderEpoch: holderEpochFrom(0),
    probe: async () => deprivileged,
    health: async () => ({ serving: true, protocolVersion: 1, features: [...features], bootId }),
    async *execute(wish) {
      yield { t: "started", executionId: wish.executionId, bootId, attached: false };
      yield { t: "output", stream: "stdout", offset: 0, data: new TextEncoder().encode(`${wish.args.join(" ")}\n`) };
      yield { t: "exited", exit: exitedWith(0) };
    },
    files: new FakeFiles(),
    cancel: async () => ({ alreadyEnded: false }),
    fence: async (epoch) => {
      if (epoch < script.holderEpoch) throw answer("HOLDER_EPOCH_SUPERSEDED", script.holderEpoch);
      script.holderEpoch = epoch;
    },
    quiesce: async ({ holdMs }) => ({
      scope: "pid_namespace",
      rounds: 1,
      stopped: [],
      stoppedCount: 0,
      notReached: [],
      holdId: holdMs === undefined ? undefined : "hold-1",
    }),
    releaseQuiesce: async () => undefined,
    flush: async () => ({ tookMs: 1 }),
    releaseSessions: async () => undefined,
  };
  return script;
}

/** An ordinary end. */
export function exitedWith(code: number): Extract<ExecutionEvent, { readonly t: "exited" }>["exit"] {
  return {
    status: { t: "code", code },
    timedOut: false,
    leftovers: [],
    outputBytes: 0,
    ranMs: 1,
    message: undefined,
  };
}

/** A call that gets no answer before its deadline. */
export function silence(within: Pick<Deadline, "signal">): Promise<never> {
  return new Promise((_, reject) => {
    within.signal.addEventListener("abort", () => reject(within.signal.reason), { once: true });
  });
}
