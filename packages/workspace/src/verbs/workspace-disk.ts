import { Deadline } from "@holdfast/async";
import {
  flushAnswerMarginMs,
  type GuestFeature,
  guestDialTimeoutMs,
  type HolderEpoch,
  sessionReleaseTimeoutMs,
} from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import { askGuest } from "../calls/guest-call.ts";
import type { Guest, QuiesceOrder, QuiesceResult } from "../ports/guest.ts";
import { admissionRefusal, workspaceNotReady } from "../refusals.ts";
import type { Handle } from "../state/handle.ts";
import type { TransitionQueue } from "../transition-queue.ts";
import { quiesceBudgetMs } from "./quiesce.ts";

/**
 * Quiesce and flush by themselves (L28): they need an `active` workspace, take their turn among its transitions, and change nothing on
 * the cluster. A guest that cannot is GUEST_FEATURE_MISSING; one that did not confirm is QUIESCE_UNCONFIRMED or FLUSH_UNCONFIRMED.
 */
export class WorkspaceDisk {
  readonly #ws: Handle;
  readonly #turns: TransitionQueue;
  readonly #epoch: HolderEpoch | undefined;
  readonly #named: (operation: string, error: unknown) => unknown;

  constructor(
    ws: Handle,
    turns: TransitionQueue,
    epoch: HolderEpoch | undefined,
    named: (operation: string, error: unknown) => unknown,
  ) {
    this.#ws = ws;
    this.#turns = turns;
    this.#epoch = epoch;
    this.#named = named;
  }

  /** Ends every program of the guest. With `holdMs` nothing new starts until `release`, or until that lease ends. */
  async quiesce(order: QuiesceOrder, caller: AbortSignal): Promise<QuiesceResult> {
    const ask = (guest: Guest, within: Deadline): Promise<QuiesceResult> => guest.quiesce(order, within);
    const held = order.holdMs === undefined ? "" : " It may hold its programs back until the lease ends.";
    const lost = (cause: Error): HoldfastError =>
      new HoldfastError("QUIESCE_UNCONFIRMED", {
        message: `It is not known whether the programs of workspace ${this.#ws.id} are at rest: its guest was asked, and did not answer (${cause.message}).${held} Nothing else was changed. Call again.`,
        metadata: { why: "silent" },
        cause,
      });
    return await this.#inTurn("QuiesceWorkspace", "quiesce", quiesceBudgetMs(order.graceMs), { ask, lost }, caller);
  }

  /** Writes the workspace's file system out. */
  async flush(timeoutMs: number, caller: AbortSignal): Promise<{ readonly tookMs: number }> {
    const ask = (guest: Guest, within: Deadline): Promise<{ readonly tookMs: number }> =>
      guest.flush(timeoutMs, within);
    const lost = (cause: Error): HoldfastError =>
      new HoldfastError("FLUSH_UNCONFIRMED", {
        message: `It is not known whether the disk of workspace ${this.#ws.id} was flushed: its guest was asked, and did not answer (${cause.message}). Nothing was changed. What programs had fsynced is safe. Call again.`,
        metadata: { why: "silent" },
        cause,
      });
    return await this.#inTurn("FlushWorkspace", "flush", timeoutMs + flushAnswerMarginMs, { ask, lost }, caller);
  }

  /** Lets a held quiesce go. One that is over is a success. */
  async release(holdId: string, caller: AbortSignal): Promise<void> {
    const ask = (guest: Guest, within: Deadline): Promise<void> => guest.releaseQuiesce(holdId, within);
    const lost = (cause: Error): HoldfastError =>
      new HoldfastError("AGENT_UNREACHABLE", {
        message: `It is not known whether the guest of workspace ${this.#ws.id} was let go: it did not answer (${cause.message}). Its lease ends the hold in any case. Call again.`,
        cause,
      });
    await this.#inTurn("ReleaseWorkspace", "quiesce", sessionReleaseTimeoutMs, { ask, lost }, caller);
  }

  async #inTurn<Answer>(
    operation: string,
    feature: GuestFeature,
    budgetMs: number,
    { ask, lost }: Asking<Answer>,
    caller: AbortSignal,
  ): Promise<Answer> {
    const ws = this.#ws;
    const late = (): HoldfastError =>
      workspaceNotReady(ws, `another transition of it took longer than the ${budgetMs} ms that this call had`);
    const claim = { changes: true, epoch: this.#epoch };
    try {
      return await this.#turns.between(budgetMs, caller, late, async () => {
        if (ws.state.t !== "active") throw admissionRefusal(ws);
        // Its own time: what was spent in the queue is not the guest's.
        using within = new Deadline(ws.deps.clock, budgetMs + guestDialTimeoutMs, caller);
        const call = { feature, claim, lost, ask: (guest: Guest) => ask(guest, within) };
        return await askGuest(ws, call, caller);
      });
    } catch (error) {
      throw this.#named(operation, error);
    }
  }
}

interface Asking<Answer> {
  readonly ask: (guest: Guest, within: Deadline) => Promise<Answer>;
  readonly lost: (cause: Error) => HoldfastError;
}
