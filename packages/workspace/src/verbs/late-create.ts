import { Deadline } from "@holdfast/async";
import { epochOfNew } from "../fence/holder-epoch.ts";
import type { Handle } from "../state/handle.ts";
import { awaitChange } from "../waiting.ts";
import { type StartAttempt, tidyFailedStart } from "./start-attempt.ts";

/** How long a POST that nobody answered is looked for after its Open has failed (L14). */
export const lateCreateSoughtMs = 2 * 60_000;

/**
 * Looks for a POST that may land late, so that a pod that nobody can use is suspended as the call wished. That is decided only at the
 * end of the window, and not once a later call of this process took on what landed: it may be waiting for this very pod.
 */
export function seekLateCreate(ws: Handle, attempt: StartAttempt): void {
  const over = ws.lateCreates.seek(ws.id, attempt);
  seek(ws, attempt)
    .catch((error: unknown) => {
      ws.deps.log.warn(
        { workspaceId: ws.id, createdBy: attempt.createdBy, error },
        "an unanswered create was not seen to land while it was looked for",
      );
    })
    .finally(over);
}

async function seek(ws: Handle, attempt: StartAttempt): Promise<void> {
  using within = new Deadline(ws.deps.clock, lateCreateSoughtMs);
  using changes = ws.deps.cluster.changes(ws.name);
  let landed = false;
  try {
    for (;;) {
      const sandbox = await ws.deps.cluster.readSandbox(ws.name, within);
      // Somebody else's stands: ours can no longer land.
      if (sandbox && sandbox.stamps.createdBy !== attempt.createdBy) return;
      if (attempt.takenOn) return;
      landed = sandbox !== undefined;
      await awaitChange(changes, within);
    }
  } catch (error) {
    if (!landed || !within.expired) throw error;
  }
  attempt.woken = true;
  attempt.held = epochOfNew(attempt.fencing);
  await tidyFailedStart(ws, attempt, new Error("its Open had failed before the create landed"));
}
