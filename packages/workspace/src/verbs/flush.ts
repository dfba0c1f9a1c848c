import type { Deadline } from "@holdfast/async";
import { guestDialTimeoutMs } from "@holdfast/contract";
import { bindableOf } from "../binding/bindable.ts";
import { dialGuest } from "../binding/dial-guest.ts";
import type { SandboxReading } from "../ports/cluster.ts";
import type { Handle } from "../state/handle.ts";
import type { FlushReport, FlushWish } from "../wishes.ts";

const safe = "What programs had fsynced is safe";
const unmount = `${safe}; the rest goes out with the pod's ordinary unmount.`;

/**
 * L26, L28: what becomes of the flush that belongs to a suspend. No guest of this release can flush, so it never stops a suspend; it
 * says whether the guest could be asked.
 */
export async function flushBefore(
  ws: Handle,
  wish: FlushWish,
  sandbox: SandboxReading,
  within: Deadline,
): Promise<FlushReport> {
  if (!wish.enabled) return skipped("The caller declined it.");
  const { t } = ws.state;
  if (t === "suspending" || t === "suspended") return skipped("The workspace was being suspended already.");
  if (sandbox.mode === "Suspended") return unreachable("Somebody else suspended the workspace before this call");
  return ws.state.t === "active" ? await askBound(ws, within) : await askUnbound(ws, sandbox, within);
}

/** For a suspend that found nothing to do, and for a delete. */
export function skipped(why: string): FlushReport {
  return { outcome: "skipped", cause: why };
}

async function askBound(ws: Handle, within: Deadline): Promise<FlushReport> {
  if (ws.state.t !== "active") return skipped("There is no running guest to ask.");
  using dial = within.within(guestDialTimeoutMs);
  try {
    const health = await ws.state.bound.guest.health(dial);
    return health.serving ? unsupported() : unreachable("The guest's agent is stopping");
  } catch (error) {
    within.throwIfOver();
    return unreachable(wordsOf(error));
  }
}

/** A guest that is not bound here: one look, and only a guest that proves itself is asked. */
async function askUnbound(ws: Handle, sandbox: SandboxReading, within: Deadline): Promise<FlushReport> {
  using dial = within.within(guestDialTimeoutMs);
  try {
    const pod = bindableOf(await ws.deps.cluster.readPods(sandbox, dial), ws.left);
    if (!pod) return skipped("There is no running guest to ask.");
    const { bound } = await dialGuest(ws, sandbox, pod, dial);
    bound.guest.close();
    return unsupported();
  } catch (error) {
    within.throwIfOver();
    return unreachable(wordsOf(error));
  }
}

function unsupported(): FlushReport {
  return { outcome: "unsupported", cause: `The guest cannot flush. ${unmount}` };
}

function unreachable(why: string): FlushReport {
  return { outcome: "unreachable", cause: `${why}, so the guest was not asked. ${unmount}` };
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : "The guest did not answer";
}
