import type { Clock, Deadline } from "@holdfast/async";
import { bootIdOf, type HolderEpoch } from "@holdfast/contract";
import type { KubeObject } from "@holdfast/embedded-cluster/testing";
import { HoldfastError } from "@holdfast/errors";
import { deprivileged, exitedWith, FakeExecutions, FakeFiles, FakeSessions, refusePort } from "@holdfast/testkit";
import {
  type ExecutionEvent,
  type ExecutionWish,
  type Guest,
  type GuestAddress,
  type GuestDialler,
  type GuestFiles,
  type GuestHealth,
  GuestLost,
  GuestNotReached,
  type QuiesceOrder,
  type QuiesceResult,
} from "@holdfast/workspace";
import { type CallRecord, currentCall } from "./calls.ts";

export const guestFaults = ["lost_before", "lost_after", "slow", "unreached"] as const;
export type GuestFault = (typeof guestFaults)[number];
export type GuestVerb =
  | "health"
  | "probe"
  | "fence"
  | "execute"
  | "flush"
  | "quiesce"
  | "releaseQuiesce"
  | "releaseSessions"
  | "write";

/** What a pod's guest did for somebody. */
export interface Effect {
  readonly pod: string;
  readonly verb: GuestVerb;
  readonly epoch: number | undefined;
  readonly call: CallRecord | undefined;
  /** The pod's name, and the uid of its owner. */
  readonly name: string | undefined;
  readonly owner: string | undefined;
  readonly order: number;
}

/** A program that runs on after its caller: what ends it is noted. */
export interface Program {
  readonly pod: string;
  readonly bootId: string;
  readonly call: CallRecord | undefined;
  endedBy: "itself" | "its client" | undefined;
}

export interface PodLook {
  /** The address of the pod of this uid while its container runs; undefined otherwise. */
  addressOf(pod: string): string | undefined;
  restartsOf(pod: string): number;
  isCut(address: string): boolean;
  podOf(pod: string): KubeObject | undefined;
  order(): number;
}

/** The state of one pod's guest: its epoch lies in the pod, and outlives the agent's process. */
interface GuestState {
  epoch: number;
}

/** The guests of all pods, as the agent's rules say: what each may do, it does at once and atomically. */
export class ModelGuests {
  readonly effects: Effect[] = [];
  readonly programs: Program[] = [];
  readonly #states = new Map<string, GuestState>();
  readonly #faults: { readonly verb: GuestVerb; readonly fault: GuestFault }[] = [];
  readonly #pods: PodLook;
  readonly #clock: Clock;
  readonly met = new Map<string, number>();

  constructor(pods: PodLook, clock: Clock) {
    this.#pods = pods;
    this.#clock = clock;
  }

  /** For one replica, which may die. */
  dialler(isAlive: () => boolean): GuestDialler {
    return { guest: (address) => new ModelGuest(address, this, isAlive, undefined) };
  }

  fail(verb: GuestVerb, fault: GuestFault): void {
    this.#faults.push({ verb, fault });
  }

  heal(): void {
    this.#faults.length = 0;
  }

  bootIdOf(pod: string): string {
    return `boot-${pod}-${this.#pods.restartsOf(pod)}`;
  }

  epochOf(pod: string): number {
    return this.#state(pod).epoch;
  }

  /** Where a call arrives, unless something is in its way. */
  async reach(address: GuestAddress, verb: GuestVerb, isAlive: () => boolean): Promise<"lost_after" | undefined> {
    const stands = (): boolean =>
      isAlive() && this.#pods.addressOf(address.podUid) === address.host && !this.#pods.isCut(address.host);
    if (!stands()) throw new GuestNotReached("no-connection", "connect ECONNREFUSED");
    const at = this.#faults.findIndex((one) => one.verb === verb);
    if (at < 0) return undefined;
    const [met] = this.#faults.splice(at, 1);
    const key = `${met?.verb} ${met?.fault}`;
    this.met.set(key, (this.met.get(key) ?? 0) + 1);
    if (met) currentCall()?.met.add(`guest ${met.fault}`);
    if (met?.fault === "unreached") throw new GuestNotReached("no-connection", "connect ETIMEDOUT");
    if (met?.fault === "lost_before") throw new GuestLost("the connection was cut");
    if (met?.fault === "slow") {
      await new Promise<void>((resolve) => this.#clock.schedule(400, resolve));
      if (!stands()) throw new GuestLost("the connection was cut while it was slow");
      return undefined;
    }
    return "lost_after";
  }

  raise(pod: string, epoch: number): void {
    const state = this.#state(pod);
    if (epoch < state.epoch) throw this.#refusal("HOLDER_EPOCH_SUPERSEDED", state.epoch);
    state.epoch = epoch;
  }

  /** G5a: what a call may do. */
  judge(pod: string, epoch: number | undefined): void {
    const { epoch: stored } = this.#state(pod);
    if (epoch === undefined && stored > 0) throw this.#refusal("HOLDER_EPOCH_REQUIRED", stored);
    if (epoch !== undefined && epoch < stored) throw this.#refusal("HOLDER_EPOCH_SUPERSEDED", stored);
    if (epoch !== undefined && epoch > stored) throw this.#refusal("HOLDER_EPOCH_NOT_TAKEN", stored);
  }

  note(pod: string, verb: GuestVerb, epoch: number | undefined): void {
    const metadata = this.#pods.podOf(pod)?.metadata;
    // It went while the call was on its way.
    if (!metadata) throw new GuestLost("the connection was cut, and its pod is gone");
    const { name, ownerReferences } = metadata;
    const owner = ownerReferences?.[0]?.uid;
    this.effects.push({ pod, verb, epoch, call: currentCall(), name, owner, order: this.#pods.order() });
  }

  #state(pod: string): GuestState {
    const known = this.#states.get(pod) ?? { epoch: 0 };
    this.#states.set(pod, known);
    return known;
  }

  #refusal(
    reason: "HOLDER_EPOCH_SUPERSEDED" | "HOLDER_EPOCH_REQUIRED" | "HOLDER_EPOCH_NOT_TAKEN",
    stored: number,
  ): HoldfastError {
    return new HoldfastError(reason, {
      message: `${reason} by the guest. Nothing was done.`,
      metadata: { stored: String(stored) },
    });
  }
}

class ModelGuest implements Guest {
  readonly address: GuestAddress;
  readonly files: GuestFiles = new FakeFiles();
  readonly executions = new FakeExecutions();
  readonly sessions = new FakeSessions();
  readonly connectPort = refusePort;
  readonly #all: ModelGuests;
  readonly #isAlive: () => boolean;
  readonly #epoch: HolderEpoch | undefined;

  constructor(address: GuestAddress, all: ModelGuests, isAlive: () => boolean, epoch: HolderEpoch | undefined) {
    this.address = address;
    this.#all = all;
    this.#isAlive = isAlive;
    this.#epoch = epoch;
  }

  under(epoch: HolderEpoch | undefined): Guest {
    return new ModelGuest(this.address, this.#all, this.#isAlive, epoch);
  }

  async health(within: Deadline): Promise<GuestHealth> {
    return await this.#ask("health", within, () => ({
      serving: true,
      protocolVersion: 1,
      features: ["executions", "files", "flush", "holder-epoch", "probe", "quiesce"],
      bootId: bootIdOf(this.#all.bootIdOf(this.address.podUid)),
    }));
  }

  async probe(within: Deadline): Promise<string> {
    return await this.#ask("probe", within, () => deprivileged);
  }

  async fence(epoch: HolderEpoch, within: Deadline): Promise<void> {
    await this.#ask("fence", within, () => this.#all.raise(this.address.podUid, epoch));
  }

  async flush(_: number, within: Deadline): Promise<{ readonly tookMs: number }> {
    return await this.#judged("flush", within, () => ({ tookMs: 1 }));
  }

  async quiesce(order: QuiesceOrder, within: Deadline): Promise<QuiesceResult> {
    return await this.#judged("quiesce", within, () => {
      for (const program of this.#all.programs) if (program.pod === this.address.podUid) program.endedBy ??= "itself";
      const holdId = order.holdMs === undefined ? undefined : "hold";
      return { scope: "pid_namespace", rounds: 1, stopped: [], stoppedCount: 0, notReached: [], holdId };
    });
  }

  async releaseQuiesce(_: string, within: Deadline): Promise<void> {
    await this.#judged("releaseQuiesce", within, () => undefined);
  }

  async releaseSessions(_: unknown, within: Deadline): Promise<void> {
    await this.#ask("releaseSessions", within, () => undefined).catch(() => undefined);
  }

  async *execute(wish: ExecutionWish, signal: AbortSignal): AsyncGenerator<ExecutionEvent> {
    signal.throwIfAborted();
    const pod = this.address.podUid;
    const lost = await this.#all.reach(this.address, "execute", this.#isAlive);
    this.#all.judge(pod, this.#epoch); // At the effect, whatever was true when the call came.
    this.#all.note(pod, "execute", this.#epoch);
    const bootId = bootIdOf(this.#all.bootIdOf(pod));
    const program: Program = { pod, bootId, call: currentCall(), endedBy: undefined };
    if (lost) throw new GuestLost("the connection was cut");
    yield { t: "started", executionId: wish.executionId, bootId, attached: false };
    if (wish.command === "long") {
      this.#all.programs.push(program);
      await aborted(signal);
      if (wish.onDisconnect === "cancel") program.endedBy ??= "its client";
      throw signal.reason;
    }
    yield { t: "exited", exit: exitedWith(0) };
  }

  retire(): void {}

  close(): void {}

  async #ask<T>(verb: GuestVerb, within: Deadline, answer: () => T): Promise<T> {
    within.throwIfOver();
    const lost = await this.#all.reach(this.address, verb, this.#isAlive);
    const answered = answer();
    if (lost) throw new GuestLost("the connection was cut");
    return answered;
  }

  async #judged<T>(verb: GuestVerb, within: Deadline, answer: () => T): Promise<T> {
    return await this.#ask(verb, within, () => {
      this.#all.judge(this.address.podUid, this.#epoch);
      this.#all.note(this.address.podUid, verb, this.#epoch);
      return answer();
    });
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
