import type { Deadline } from "@holdfast/async";
import { endedWords } from "../binding/bindable.ts";
import { findGuest, type GuestSearch } from "../binding/find-guest.ts";
import { type LastLook, startTimeout } from "../binding/start-problem.ts";
import type { SandboxReading } from "../ports/cluster.ts";
import {
  workspaceDeleting,
  workspaceNotFound,
  workspaceNotReady,
  workspaceReplaced,
  workspaceSuspended,
} from "../refusals.ts";
import type { Handle } from "../state/handle.ts";
import { viewOf } from "../view.ts";
import { recordAcceptedDisk } from "./record-disk.ts";
import { replaceEnded } from "./replace-ended.ts";
import { assertStillHeld, type StartAttempt } from "./start-attempt.ts";

type Bound = Extract<GuestSearch, { readonly t: "bound" }>;

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
  const search = await searchFor(ws, attempt, within);
  if (search.t !== "bound") throw startError(ws, search, onTimeout);
  const sandbox = await recorded(ws, attempt, search, within);
  ws.confirm(sandbox);
  ws.claimUids = search.claimUids;
  ws.left.clear();
  ws.commit({ t: "bound", bound: search.bound });
  ws.startedAs = viewOf(ws);
}

/** L42: a pod that ended by itself is replaced, once per call: one whose next pod ends at once would be replaced for ever. */
async function searchFor(ws: Handle, attempt: StartAttempt | undefined, within: Deadline): Promise<GuestSearch> {
  if (!attempt) return await findGuest(ws, within);
  const { acceptReplacedDisk } = attempt;
  const terms = { judge: (sandbox: SandboxReading) => assertStillHeld(attempt, sandbox), acceptReplacedDisk };
  const search = await findGuest(ws, within, terms);
  if (search.t !== "ended") return search;
  await replaceEnded(ws, attempt, search.pod, within);
  return await findGuest(ws, within, terms);
}

async function recorded(
  ws: Handle,
  attempt: StartAttempt | undefined,
  search: Bound,
  within: Deadline,
): Promise<SandboxReading> {
  if (!attempt?.acceptReplacedDisk) return search.sandbox;
  try {
    return await recordAcceptedDisk(ws, attempt, search, within);
  } catch (error) {
    search.bound.guest.close();
    throw error;
  }
}

function startError(ws: Handle, search: Exclude<GuestSearch, Bound>, onTimeout: (look: LastLook) => Error): Error {
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
