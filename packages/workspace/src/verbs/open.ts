import type { Deadline } from "@holdfast/async";
import { HoldfastError } from "@holdfast/errors";
import { unfenced } from "../fence/fencing.ts";
import { pass, readOwn } from "../fence/gate.ts";
import { epochOfNew } from "../fence/holder-epoch.ts";
import { assertDiskUsable, assertIngressSettled, assertUsable } from "../fence/standing.ts";
import type { SandboxReading } from "../ports/cluster.ts";
import { workspaceNotFound, workspaceReplaced } from "../refusals.ts";
import type { Handle } from "../state/handle.ts";
import type { OpenWish, Origin } from "../wishes.ts";
import { createWorkspace } from "../writes/create-workspace.ts";
import { bindStarted } from "./bind-started.ts";
import { noteTemplate, refreshes } from "./refresh.ts";
import { reopen } from "./reopen.ts";
import { newMark, type StartAttempt, startAttempt } from "./start-attempt.ts";
import { starting } from "./starting.ts";
import { wake } from "./wake.ts";

/** Creates the workspace, or adopts the one that stands; answers once its guest is bound. */
export async function open(ws: Handle, wish: OpenWish, within: Deadline): Promise<Origin> {
  const onStartFailure = wish.onStartFailure ?? "suspend_if_woken";
  return await starting(ws, startAttempt(ws, onStartFailure, wish), within, async (attempt) => {
    assertIngressSettled(ws);
    const standing = await lookFirst(ws, wish, within);
    const reopened = standing && (await reopen(ws, standing, attempt, wish.template, within));
    if (reopened?.kept) return "already_open";
    ws.onStartFailure = onStartFailure;
    if (ws.state.t !== "opening" && ws.state.t !== "resuming") ws.commit({ t: "resumeBegan" });
    const origin = reopened?.origin ?? (await runIt(ws, standing, wish, attempt, within));
    const noted = origin === "created" ? undefined : noteTemplate(ws, ws.known?.template, within);
    await bindStarted(ws, attempt, within);
    await noted;
    ws.origin ??= origin;
    return origin;
  });
}

/** What stands, after every check that this call asks for (L8, L11). Nothing was sent yet. */
async function lookFirst(ws: Handle, wish: OpenWish, within: Deadline): Promise<SandboxReading | undefined> {
  const standing = await readOwn(ws, within);
  if (standing?.deleting && ws.state.t !== "opening") ws.commit({ t: "deletionSeen" });
  if (!standing && ws.state.t !== "opening") {
    // What was open here was deleted by somebody: the next Open makes a new handle, and may create.
    ws.commit({ t: "vanished", why: "absent" });
    throw workspaceNotFound(ws);
  }
  if (standing) assertStandingWanted(ws, wish, standing);
  else if (wish.create === "must_exist" || wish.expectedSandboxUid !== undefined) throw workspaceNotFound(ws);
  return standing;
}

function assertStandingWanted(ws: Handle, wish: OpenWish, standing: SandboxReading): void {
  const expected = wish.expectedSandboxUid;
  if (expected !== undefined && standing.uid !== expected) throw workspaceReplaced(ws, expected, standing);
  // A refresh is judged once its template has been read, before anything is sent (wake).
  if (!refreshes(wish, standing)) assertUsable(ws, standing, wish.template);
  pass(ws, standing, wish.fencing ?? unfenced);
  if (wish.create === "must_create") throw workspaceExists(ws);
}

function runIt(
  ws: Handle,
  standing: SandboxReading | undefined,
  wish: OpenWish,
  attempt: StartAttempt,
  within: Deadline,
): Promise<Origin> {
  if (standing) return wake(ws, standing, attempt, wish.template, within);
  return createOrAdopt(ws, wish, attempt, within);
}

async function createOrAdopt(ws: Handle, wish: OpenWish, attempt: StartAttempt, within: Deadline): Promise<Origin> {
  const name = wish.template ?? ws.deps.policy.defaultTemplate;
  if (name === undefined) throw noTemplate(ws);
  const template = await ws.deps.cluster.readTemplate(name, within);
  assertDiskUsable(ws, template.disk, { source: "SandboxTemplate", name });
  ws.templateRevision = template.revision;

  const epoch = epochOfNew(attempt.fencing);
  ws.actingUnder = epoch;
  const marks = { createdBy: attempt.createdBy, writtenBy: newMark(ws, attempt), epoch };
  const outcome = await createWorkspace(ws, template, marks, within);
  if (outcome.t === "exists") {
    assertStandingWanted(ws, wish, outcome.sandbox);
    ws.remember(outcome.sandbox);
    return await wake(ws, outcome.sandbox, attempt, wish.template, within);
  }
  ws.remember(outcome.sandbox);
  ws.progressed("created");
  attempt.woken = true;
  attempt.held = epoch;
  // A take-over that only a re-read shows is taken again (L20).
  const mustTake = attempt.fencing.t === "take_over" && outcome.proof === "read_back";
  if (mustTake) await wake(ws, outcome.sandbox, attempt, wish.template, within);
  return "created";
}

function workspaceExists(ws: Handle): HoldfastError {
  return new HoldfastError("WORKSPACE_EXISTS", {
    message: `Workspace ${ws.id} stands already, and this call asked to create it. Nothing was changed. Open it with create IF_ABSENT to use it.`,
  });
}

function noTemplate(ws: Handle): HoldfastError {
  const description = "name a SandboxTemplate, or configure a default one";
  return new HoldfastError("INVALID_REQUEST", {
    message: `Workspace ${ws.id} does not exist, and this call names no template to create it from. Nothing was created: ${description}.`,
    violations: [{ field: "template", description }],
  });
}
