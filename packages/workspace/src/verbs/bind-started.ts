import type { Deadline } from "@holdfast/async";
import { endedWords } from "../binding/bindable.ts";
import { findGuest, type GuestSearch } from "../binding/find-guest.ts";
import { type LastLook, startTimeout } from "../binding/start-problem.ts";
import {
  workspaceDeleting,
  workspaceNotFound,
  workspaceNotReady,
  workspaceReplaced,
  workspaceSuspended,
} from "../refusals.ts";
import type { Handle } from "../state/handle.ts";
import { assertStillHeld, type StartAttempt } from "./start-attempt.ts";

/**
 * Waits for the guest of a workspace that was asked to run, and commits it. A call that lost the workspace to another holder meanwhile is
 * refused. `attempt`: undefined for what holds nothing.
 */
export async function bindStarted(
  ws: Handle,
  attempt: StartAttempt | undefined,
  within: Deadline,
  onTimeout: (look: LastLook) => Error = (look) => startTimeout(ws, look, within.budgetMs),
): Promise<void> {
  ws.lateCreates.takeOn(ws.id);
  ws.waitingFor = "a pod that is ready, and its guest";
  const search = await findGuest(ws, within, (sandbox) => attempt && assertStillHeld(attempt, sandbox));
  if (search.t !== "bound") throw startError(ws, search, onTimeout);
  ws.confirm(search.sandbox);
  ws.claimUids = search.claimUids;
  ws.left.clear();
  ws.commit({ t: "bound", bound: search.bound });
}

function startError(
  ws: Handle,
  search: Exclude<GuestSearch, { readonly t: "bound" }>,
  onTimeout: (look: LastLook) => Error,
): Error {
  switch (search.t) {
    case "absent":
      return workspaceNotFound(ws);
    case "another":
      return workspaceReplaced(ws, search.expected, search.sandbox);
    case "deleting":
      return workspaceDeleting(ws);
    case "suspended":
      return workspaceSuspended(ws, "START");
    case "ended":
      return workspaceNotReady(ws, endedWords(search.pod));
    case "timeout":
      return onTimeout(search.look);
  }
}
