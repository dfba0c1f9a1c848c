import { Deadline, orAborted } from "@holdfast/async";
import { sessionReleaseTimeoutMs } from "@holdfast/contract";
import type { HoldfastError } from "@holdfast/errors";
import { unfenced } from "../fence/fencing.ts";
import { gate } from "../fence/gate.ts";
import type { PodReading, SandboxReading } from "../ports/cluster.ts";
import type { Handle } from "../state/handle.ts";
import type { FlushReport, QuiesceReport, SuspendWish } from "../wishes.ts";
import { type Audience, audienceOf, speaksOfEpoch } from "./ask-before-stop.ts";
import { flushBefore } from "./flush.ts";
import { type Hold, quiesceBefore, releaseHold } from "./quiesce.ts";

/** What was done before the patch of a suspend. */
export interface QuietDisk {
  readonly flush: FlushReport;
  /** Undefined: none was asked for. */
  readonly quiesce: QuiesceReport | undefined;
  /** Owed a release where the suspend is refused. */
  readonly hold: Hold | undefined;
}

/** What the gate let pass, and the pods that stood right after. */
interface Standing {
  readonly sandbox: SandboxReading;
  readonly pods: readonly PodReading[];
}

interface QuietDisking extends Standing {
  /** Told how many programs a confirmed quiesce ended, whatever becomes of the rest. */
  readonly onQuiesced: (stopped: number) => void;
}

/**
 * Brings the disk to rest before its pod is stopped: quiesce where it is asked for, then flush unless declined; the other way round,
 * programs would write after the flush. What stops the suspend is thrown, with the guest let go on.
 */
export async function quietDisk(
  ws: Handle,
  wish: SuspendWish,
  { sandbox, pods, onQuiesced }: QuietDisking,
  within: Deadline,
): Promise<QuietDisk> {
  const audience = await audienceFor(ws, wish, { sandbox, pods }, within);
  let hold: Hold | undefined;
  try {
    const quieted = await quiesceBefore(ws, wish.quiesce, audience, sandbox, within);
    hold = quieted.hold;
    if (quieted.report?.outcome === "quiesced") onQuiesced(quieted.report.stoppedCount);
    const flush = await flushBefore(ws, wish.flush, audience, sandbox, within);
    return { flush, quiesce: quieted.report, hold };
  } catch (error) {
    await releaseHold(ws, hold);
    // The workload could forge a guest's word that a higher epoch exists: only the object says so (L22).
    if (error instanceof Error && speaksOfEpoch(error.cause)) await gate(ws, wish.fencing ?? unfenced, within);
    throw error;
  } finally {
    if (audience.t === "guest") audience.letGo();
  }
}

/** Nobody is asked, nor dialled, where nothing is wanted. */
async function audienceFor(
  ws: Handle,
  { quiesce, flush }: SuspendWish,
  { sandbox, pods }: Standing,
  within: Deadline,
): Promise<Audience> {
  if (!quiesce && !flush.enabled) return { t: "nobody", why: "Nothing was asked for" };
  return await audienceOf(ws, sandbox, pods, within);
}

/**
 * Ends what this service's callers have attached to in the guest, before it is quiesced or stopped: terminals bound to their client are killed,
 * attachments detached. Bounded, and what goes wrong is logged: the pod's end ends them in any case. True if any could be attached.
 */
export async function releaseSessions(ws: Handle, why: HoldfastError, within: Deadline): Promise<boolean> {
  const { state } = ws;
  if (state.t !== "active" || !state.bound.features.includes("sessions")) return false;
  using time = new Deadline(ws.deps.clock, Math.min(sessionReleaseTimeoutMs, within.remainingMs()));
  try {
    await orAborted(state.bound.guest.releaseSessions(why, time), time.signal);
  } catch (error) {
    ws.deps.log.warn({ workspaceId: ws.id, error }, "the guest did not confirm that its terminals were released");
  }
  return true;
}
