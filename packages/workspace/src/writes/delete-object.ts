import type { Deadline } from "@holdfast/async";
import { HoldfastError } from "@holdfast/errors";
import type { StopFencing } from "../fence/fencing.ts";
import { findOwn, pass } from "../fence/gate.ts";
import type { SandboxReading } from "../ports/cluster.ts";
import type { Handle } from "../state/handle.ts";
import { pauseBeforeRetry, writeDeadline } from "../waiting.ts";

/** `accepted`: the object carries a deletionTimestamp, or is gone. */
export type DeleteOutcome =
  | { readonly t: "accepted" }
  | { readonly t: "refused"; readonly error: HoldfastError }
  | { readonly t: "unknown"; readonly cause: unknown };

/**
 * Sends the DELETE of exactly the object that the gate read. An unknown ending is resolved by reading; where the object still stands
 * the gate is asked again and the DELETE sent again. Never degrades into an unconditional one (L24, L33).
 */
export async function deleteObject(
  ws: Handle,
  reading: SandboxReading,
  fencing: StopFencing,
  within: Deadline,
): Promise<DeleteOutcome> {
  let from = reading;
  let unanswered: unknown;
  for (let attempt = 0; ; attempt += 1) {
    const ending = await send(ws, from);
    if (ending.t === "applied" || (ending.t === "refused" && ending.why === "absent")) return accepted(ws);
    if (ending.t === "unknown") {
      unanswered = ending.cause ?? "no answer";
      ws.unresolved.deleteSentFrom(from);
    } else if (ending.why === "other") {
      return unanswered === undefined ? { t: "refused", error: ending.error } : { t: "unknown", cause: ending.error };
    }

    let now: SandboxReading;
    try {
      if (attempt > 0) await pauseBeforeRetry(ws.deps, attempt, within);
      const found = await findOwn(ws, within);
      // Another object under the name means that ours is gone.
      if (found.t !== "ours" || found.sandbox.deleting) return accepted(ws);
      now = found.sandbox;
      // What was sent before names a version that is past: it cannot land any more.
      if (now.resourceVersion !== from.resourceVersion) unanswered = undefined;
      pass(ws, now, fencing);
    } catch (error) {
      if (unanswered !== undefined) return { t: "unknown", cause: error };
      return { t: "refused", error: asRefusal(error) };
    }
    if (ending.t === "refused" && now.resourceVersion === from.resourceVersion) {
      return unanswered === undefined ? { t: "refused", error: ending.error } : { t: "unknown", cause: ending.error };
    }
    from = now;
  }
}

async function send(ws: Handle, { name, uid, resourceVersion }: SandboxReading) {
  using time = writeDeadline(ws.deps);
  return await ws.deps.cluster.deleteSandbox({ name, uid, resourceVersion }, time);
}

function accepted(ws: Handle): DeleteOutcome {
  ws.unresolved.deleteResolved();
  return { t: "accepted" };
}

function asRefusal(error: unknown): HoldfastError {
  if (error instanceof HoldfastError) return error;
  return new HoldfastError("DELETE_UNCONFIRMED", {
    message:
      "The delete was refused because the object had changed, and the time ended before it could be read again. Nothing was deleted.",
    cause: error,
  });
}
