import type { Deadline } from "@holdfast/async";
import { flushAnswerMarginMs } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import type { SandboxReading } from "../ports/cluster.ts";
import type { Handle } from "../state/handle.ts";
import type { FlushReport, FlushWish } from "../wishes.ts";
import { type Audience, askFor, wordsOf } from "./ask-before-stop.ts";

const safe = "What programs had fsynced is safe";
const unmount = `${safe}; the rest goes out with the pod's ordinary unmount.`;

/**
 * L26: flushes before a pod is stopped. A guest that was asked and did not confirm stops the suspend (FLUSH_UNCONFIRMED); one that
 * cannot flush, or could not be asked, does not: the report says so, and what is safe.
 */
export async function flushBefore(
  ws: Handle,
  wish: FlushWish,
  audience: Audience,
  sandbox: SandboxReading,
  within: Deadline,
): Promise<FlushReport> {
  if (!wish.enabled) return skipped("The caller declined it.");
  if (audience.t === "nobody") return skipped(`${audience.why}.`);
  if (audience.t === "unreachable") return unreachable(audience.why);
  using answer = within.within(wish.timeoutMs + flushAnswerMarginMs);
  const asked = await askFor(audience, "flush", sandbox, (guest) => guest.flush(wish.timeoutMs, answer), answer);
  switch (asked.t) {
    case "answered":
      return { outcome: "flushed", cause: "", tookMs: asked.answer.tookMs };
    case "missing":
      return { outcome: "unsupported", cause: `The guest cannot flush. ${unmount}` };
    case "unreachable":
      return unreachable(asked.why);
    case "refused":
    case "silent":
      throw unconfirmed(ws, asked.t, asked.error);
  }
}

/** For a suspend that found nothing to do, and for a delete. */
export function skipped(why: string): FlushReport {
  return { outcome: "skipped", cause: why };
}

function unreachable(why: string): FlushReport {
  return { outcome: "unreachable", cause: `${why}, so the guest was not asked. ${unmount}` };
}

function unconfirmed(ws: Handle, how: "refused" | "silent", cause: unknown): HoldfastError {
  const what = how === "refused" ? "did not confirm the flush" : "was asked for a flush and did not answer";
  const metadata = cause instanceof HoldfastError ? cause.metadata : {};
  return new HoldfastError("FLUSH_UNCONFIRMED", {
    message: `Workspace ${ws.id} was not asked to stop: its guest ${what} (${wordsOf(cause)}). It runs on. Suspend it again, or with the flush declined; ${safe.toLowerCase()} either way.`,
    metadata: { ...metadata, why: how },
    cause,
  });
}
