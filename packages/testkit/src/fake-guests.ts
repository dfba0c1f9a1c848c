import type { Deadline } from "@holdfast/async";
import { type BootId, bootIdOf, type PodUid } from "@holdfast/contract";
import {
  type ExecutionEvent,
  type ExecutionWish,
  type Guest,
  type GuestAddress,
  type GuestDialler,
  type GuestFiles,
  type GuestHealth,
  GuestNotReached,
} from "@holdfast/workspace";
import { FakeFiles, filesReachedBy } from "./fake-files.ts";

/** What an agent in a pod answers. Change it to make the agent misbehave. */
export interface AgentScript {
  /** Thrown before anything is sent, while set. */
  unreached: GuestNotReached["why"] | undefined;
  probe: (within: Deadline) => Promise<string>;
  health: (within: Deadline) => Promise<GuestHealth>;
  execute: (wish: ExecutionWish, signal: AbortSignal) => AsyncIterable<ExecutionEvent>;
  files: GuestFiles;
}

export type GuestVerb = "probe" | "health" | "execute" | "files";

/** What the fake needs to know of the cluster: an agent runs only in a pod that does. */
export interface RunningPods {
  podOf(uid: PodUid): { readonly ip: string | undefined; readonly ready: boolean } | undefined;
}

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
  readonly calls: { readonly verb: GuestVerb; readonly pod: PodUid }[] = [];
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

  /** For the client: the agent that a call reaches, or why it reaches none. */
  reach(verb: GuestVerb, address: GuestAddress): AgentScript {
    this.calls.push({ verb, pod: address.podUid });
    const pod = this.#pods.podOf(address.podUid);
    if (!pod || pod.ip !== address.host) throw new GuestNotReached("no-connection", "connect ECONNREFUSED");
    const agent = this.agent(address.podUid);
    if (agent.unreached) throw new GuestNotReached(agent.unreached, agent.unreached);
    return agent;
  }
}

class FakeGuest implements Guest {
  readonly address: GuestAddress;
  readonly files: GuestFiles;
  readonly #guests: FakeGuests;
  liveExecutions = 0;

  constructor(address: GuestAddress, guests: FakeGuests) {
    this.address = address;
    this.#guests = guests;
    this.files = filesReachedBy(() => guests.reach("files", address).files);
  }

  async probe(within: Deadline): Promise<string> {
    within.throwIfOver();
    return await this.#guests.reach("probe", this.address).probe(within);
  }

  async health(within: Deadline): Promise<GuestHealth> {
    within.throwIfOver();
    return await this.#guests.reach("health", this.address).health(within);
  }

  async *execute(wish: ExecutionWish, signal: AbortSignal): AsyncGenerator<ExecutionEvent> {
    signal.throwIfAborted();
    const agent = this.#guests.reach("execute", this.address);
    this.liveExecutions += 1;
    try {
      yield* agent.execute(wish, signal);
    } finally {
      this.liveExecutions -= 1;
    }
  }

  close(): void {
    this.#guests.closed.push(this.address.podUid);
  }
}

function willing(bootId: BootId): AgentScript {
  return {
    unreached: undefined,
    probe: async () => deprivileged,
    health: async () => ({ serving: true, protocolVersion: 1, features: ["executions", "files", "probe"], bootId }),
    async *execute(wish) {
      yield { t: "started", executionId: wish.executionId, bootId, attached: false };
      yield { t: "output", stream: "stdout", offset: 0, data: new TextEncoder().encode(`${wish.args.join(" ")}\n`) };
      yield { t: "exited", exit: exitedWith(0) };
    },
    files: new FakeFiles(),
  };
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
