import { Deadline } from "@holdfast/async";
import {
  clusterRequestTimeoutMs,
  guestDialTimeoutMs,
  type HolderEpoch,
  quiesceAnswerMarginMs,
  quiesceGraceDefaultMs,
  quiesceHoldMaxMs,
  quiesceScanMs,
} from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import type { SandboxReading } from "../ports/cluster.ts";
import type { GuestAddress, QuiesceResult } from "../ports/guest.ts";
import type { Handle } from "../state/handle.ts";
import type { QuiesceReport, QuiesceWish } from "../wishes.ts";
import { type Audience, askFor, wordsOf } from "./ask-before-stop.ts";

/** The quiet that a suspend holds while it is decided. It is released where the suspend is refused, and else left to its lease. */
export interface Hold {
  readonly address: GuestAddress;
  /** Of the guest, as it was asked. */
  readonly epoch: HolderEpoch | undefined;
  readonly id: string;
}

export interface Quieted {
  /** Undefined: none was asked for. */
  readonly report: QuiesceReport | undefined;
  readonly hold: Hold | undefined;
}

/**
 * L27: brings the guest's programs to rest before a pod is stopped, and holds it so. Only a guest that cannot do it, or that does not
 * run, lets the suspend go ahead without; anything else that is no confirmation stops it with QUIESCE_UNCONFIRMED.
 */
export async function quiesceBefore(
  ws: Handle,
  wish: QuiesceWish | undefined,
  audience: Audience,
  sandbox: SandboxReading,
  within: Deadline,
): Promise<Quieted> {
  if (!wish) return { report: undefined, hold: undefined };
  // L28: what this guest had in memory was promised to nobody any more.
  if (ws.state.t === "suspending") throw unconfirmed(ws, "suspending", "it is being suspended already");
  if (audience.t === "nobody") return { report: unserved("skipped", `${audience.why}.`), hold: undefined };
  if (audience.t === "unreachable") throw unconfirmed(ws, "unreachable", audience.why);

  using answer = within.within(quiesceBudgetMs(wish.graceMs));
  // For as long as this suspend may take: a lease that ended before would let programs start on a disk that counts as quiet.
  const holdMs = Math.min(quiesceHoldMaxMs, within.remainingMs() + clusterRequestTimeoutMs);
  const order = { graceMs: wish.graceMs, holdMs };
  const asked = await askFor(audience, "quiesce", sandbox, (guest) => guest.quiesce(order, answer), answer);
  switch (asked.t) {
    case "answered": {
      const { holdId } = asked.answer;
      const { epoch, guest } = audience;
      const hold = holdId === undefined ? undefined : { address: guest.address, epoch, id: holdId };
      return { report: reportOf(asked.answer), hold };
    }
    case "missing":
      return {
        report: unserved("unsupported", "The guest cannot quiesce. Its programs end with the pod."),
        hold: undefined,
      };
    case "unreachable":
      throw unconfirmed(ws, "unreachable", asked.why);
    case "refused":
    case "silent":
      throw unconfirmed(ws, asked.t, wordsOf(asked.error), asked.error);
  }
}

/** Lets programs start again after a suspend that was refused. What goes wrong is logged: the lease ends it in any case. */
export async function releaseHold(ws: Handle, hold: Hold | undefined): Promise<void> {
  if (!hold) return;
  using time = new Deadline(ws.deps.clock, guestDialTimeoutMs);
  // Over its own connection: what asked may be closed by now, or be what broke.
  const guest = ws.deps.guests.guest(hold.address);
  try {
    await guest.under(hold.epoch).releaseQuiesce(hold.id, time);
  } catch (error) {
    ws.deps.log.warn(
      { workspaceId: ws.id, hold: hold.id, error },
      "a hold could not be released; its lease will end it",
    );
  } finally {
    guest.close();
  }
}

/** How long a guest may take to answer a quiesce. */
export function quiesceBudgetMs(graceMs: number | undefined): number {
  return quiesceScanMs + (graceMs ?? quiesceGraceDefaultMs) + quiesceAnswerMarginMs;
}

/** What a guest confirmed, for callers. */
export function reportOf(result: QuiesceResult): QuiesceReport {
  const { scope, rounds, stopped, stoppedCount, notReached } = result;
  const narrow = "The guest's agent cannot see the whole pod: only what it had started was stopped.";
  const cause = scope === "owned_sessions" ? narrow : "";
  return { outcome: "quiesced", cause, scope, rounds, stopped, stoppedCount, notReached };
}

/** For a suspend that found nothing to do, too. */
export function unserved(outcome: "unsupported" | "skipped", cause: string): QuiesceReport {
  return { outcome, cause, scope: undefined, rounds: 0, stopped: [], stoppedCount: 0, notReached: [] };
}

type Why = "suspending" | "unreachable" | "refused" | "silent";

function unconfirmed(ws: Handle, why: Why, words: string, cause?: unknown): HoldfastError {
  const metadata = cause instanceof HoldfastError ? cause.metadata : {};
  const may = why === "silent" ? " It may hold its programs back until the lease of this call ends." : "";
  return new HoldfastError("QUIESCE_UNCONFIRMED", {
    message: `Nothing was sent to the cluster for this suspend of workspace ${ws.id}: that its programs are at rest was not confirmed (${words}).${may} Call again, or suspend without a quiesce.`,
    metadata: { ...metadata, why },
    cause,
  });
}
