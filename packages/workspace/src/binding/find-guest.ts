import { type Deadline, DeadlineExceeded, type Subscription } from "@holdfast/async";
import { clusterRequestTimeoutMs, type PodUid, waitRereadMs } from "@holdfast/contract";
import { hasReason } from "@holdfast/errors";
import { type Found, findOwn } from "../fence/gate.ts";
import type { PodReading, SandboxReading } from "../ports/cluster.ts";
import { GuestLost, GuestNotReached } from "../ports/guest.ts";
import type { Handle } from "../state/handle.ts";
import type { BoundGuest } from "../state/workspace-state.ts";
import { awaitChange, rereadAfterFailureMs } from "../waiting.ts";
import { agentHostOf } from "./agent-host.ts";
import { bindableOf, endedByItself, isCandidate } from "./bindable.ts";
import { type ClaimUids, readClaims } from "./claims.ts";
import { dialGuest, guestPrivileged, ProbeUnanswered } from "./dial-guest.ts";
import { type Judge, StandingMoved } from "./fence-guest.ts";
import { notReached } from "./guest-failure.ts";
import type { LastLook } from "./start-problem.ts";

/** The times between dials of a ready pod whose agent was not reached: doubling from the first to the last. */
const redialMs = { first: 100, last: 5_000 };

/** What a wait for a guest came to. Only `bound` changes nothing about where the workspace stands. */
export type GuestSearch =
  | {
      readonly t: "bound";
      readonly bound: BoundGuest;
      readonly claimUids: ClaimUids;
      /** The object as it was read after the pod: its guest was fenced with what this says. */
      readonly sandbox: SandboxReading;
    }
  | Exclude<Found, { readonly t: "ours" }>
  | { readonly t: "deleting" }
  | { readonly t: "suspended" }
  | { readonly t: "ended"; readonly pod: PodReading }
  | { readonly t: "timeout"; readonly look: LastLook };

/** What the caller of a search asks of what it finds. */
export interface GuestTerms {
  /** Says whether the call may have the guest of what stands; throws why not. */
  readonly judge?: Judge;
  /** The disk may be another than the known one. */
  readonly acceptReplacedDisk?: boolean;
}

/**
 * Waits for a bindable pod of this Running workspace and reaches the guest in it. Every try reads address and token afresh, from one
 * pod object. Throws what is not cured by waiting (GUEST_PRIVILEGED, WORKSPACE_REPLACED, …), what `judge` throws, and the caller's own
 * cancellation.
 */
export async function findGuest(ws: Handle, within: Deadline, terms: GuestTerms = {}): Promise<GuestSearch> {
  using changes = ws.deps.cluster.changes(ws.name);
  const search = new Search(ws, terms);
  for (;;) {
    try {
      const outcome = await search.look(within);
      if (outcome) return outcome;
      await awaitChange(changes, within, search.nextLookMs);
    } catch (error) {
      if (!within.signal.aborted) {
        search.tolerate(error);
        await awaitNext(changes, within, search.nextLookMs);
      }
      if (within.expired) return search.timedOut();
      within.throwIfOver();
    }
  }
}

const unanswered = { words: "unanswered", proven: false };

async function awaitNext(changes: Subscription, within: Deadline, atMostMs: number): Promise<void> {
  try {
    await awaitChange(changes, within, atMostMs);
  } catch (error) {
    if (!within.signal.aborted) throw error;
  }
}

class Search {
  readonly #ws: Handle;
  readonly #terms: GuestTerms;
  #pods: readonly PodReading[] | undefined;
  #looks = 0;
  #walkedInOnTerminating = false;
  #failure: unknown;
  #tokenRefusedBy: PodUid | undefined;
  #dialling: PodUid | undefined;
  #dials = 0;
  /** Where the last one was dialled. */
  #host: string | undefined;
  #lookFailed = false;
  #noServiceName = false;

  constructor(ws: Handle, terms: GuestTerms) {
    this.#ws = ws;
    this.#terms = terms;
  }

  /** The longest time to the next look: short after a failure that may pass by itself, which no change tells of. */
  get nextLookMs(): number {
    if (this.#dialling !== undefined) return Math.min(redialMs.last, redialMs.first * 2 ** Math.min(this.#dials, 10));
    return this.#lookFailed ? rereadAfterFailureMs : waitRereadMs;
  }

  async look(within: Deadline): Promise<GuestSearch | undefined> {
    this.#dialling = undefined;
    this.#lookFailed = false;
    const ws = this.#ws;
    using reads = within.within(clusterRequestTimeoutMs);
    const found = await findOwn(ws, reads);
    if (found.t !== "ours") return found;
    const { sandbox } = found;
    if (sandbox.deleting) return { t: "deleting" };
    if (sandbox.mode === "Suspended") return { t: "suspended" };

    const pods = await ws.deps.cluster.readPods(sandbox, reads);
    this.#note(pods);
    if (sandbox.observedGeneration >= sandbox.generation) takeBackExclusions(ws, pods);
    const ended = endedByItself(pods);
    if (ended) return { t: "ended", pod: ended };
    const pod = bindableOf(pods, ws.left);
    const host = pod && agentHostOf(ws, sandbox, pod);
    this.#noServiceName = pod !== undefined && host === undefined;
    if (!pod || host === undefined) return undefined;

    const claimUids = await readClaims(ws, sandbox, this.#terms.acceptReplacedDisk === true, reads);
    this.#dialling = pod.uid;
    this.#host = host;
    ws.guestMoves.dialled(pod.uid);
    const dialled = await dialGuest(ws, sandbox, pod, within, this.#terms.judge);
    return { t: "bound", claimUids, ...dialled };
  }

  /** Notes a failure that waiting may cure; throws any other. */
  tolerate(error: unknown): void {
    this.#failure = error;
    this.#lookFailed = true;
    if (this.#dialling !== undefined) this.#dials += 1;
    if (error instanceof GuestNotReached) this.#tolerateNotReached(error);
    else if (!mayPass(error)) throw error;
  }

  timedOut(): GuestSearch {
    if (this.#failure instanceof ProbeUnanswered) throw guestPrivileged(this.#ws, unanswered, this.#failure);
    return {
      t: "timeout",
      look: {
        pods: this.#pods,
        left: this.#ws.left,
        walkedInOnTerminating: this.#walkedInOnTerminating,
        failure: this.#failure,
        noServiceName: this.#noServiceName,
      },
    };
  }

  #note(pods: readonly PodReading[]): void {
    this.#pods = pods;
    if (this.#looks === 0) {
      const candidates = pods.some((pod) => isCandidate(pod, this.#ws.left));
      this.#walkedInOnTerminating = pods.some((pod) => pod.deleting) && !candidates;
    }
    this.#looks += 1;
  }

  #tolerateNotReached(failure: GuestNotReached): void {
    if (failure.why === "no-connection" || failure.why === "retiring") return;
    // A pod that was just replaced refuses the old token. The same pod refusing it twice will not change its mind.
    const first = failure.why === "token-refused" && this.#tokenRefusedBy !== this.#dialling;
    this.#tokenRefusedBy = this.#dialling;
    if (!first) throw notReached(this.#ws, failure, this.#host);
  }
}

/** An exclusion ends where the controller has seen the later Running and the pod still carries no deletionTimestamp (L15). */
function takeBackExclusions(ws: Handle, pods: readonly PodReading[]): void {
  for (const pod of pods) if (!pod.deleting) ws.left.delete(pod.uid);
}

function mayPass(error: unknown): boolean {
  return (
    error instanceof GuestLost ||
    error instanceof ProbeUnanswered ||
    error instanceof StandingMoved ||
    error instanceof DeadlineExceeded ||
    hasReason(error, "CLUSTER_UNAVAILABLE", "AGENT_RETIRING", "AGENT_UNREACHABLE")
  );
}
