import { Deadline, DeadlineExceeded } from "@holdfast/async";
import { clusterRequestTimeoutMs, type SandboxUid } from "@holdfast/contract";
import { HoldfastError, hasReason } from "@holdfast/errors";
import { type StopFencing, unfenced } from "../fence/fencing.ts";
import { findOwn, pass, readOwn } from "../fence/gate.ts";
import type { Remains, SandboxReading } from "../ports/cluster.ts";
import { handleOver, workspaceDeleting, workspaceReplaced } from "../refusals.ts";
import type { Handle } from "../state/handle.ts";
import { awaitChange } from "../waiting.ts";
import type { DestroyWish } from "../wishes.ts";
import { deleteObject } from "../writes/delete-object.ts";
import { lateCreateSoughtMs } from "./late-create.ts";
import { releaseSessions } from "./quiet-disk.ts";

/** Which object, and whose word it is. */
export type DeleteWishes = Pick<DestroyWish, "expectedSandboxUid" | "fencing">;

/**
 * Deletes the workspace *and its disk*, because the caller asked for it by name (L4). Resolves only after the object, its pods and
 * its claims have been seen gone (L34). One that is gone already is a success. Returns true when a DELETE of this call's was sent:
 * false where nothing stood, or somebody else had deleted it before.
 */
export async function deleteWithDisk(ws: Handle, wish: DeleteWishes, within: Deadline): Promise<boolean> {
  const { expectedSandboxUid: expected, fencing = unfenced } = wish;
  if (ws.state.t === "gone") {
    const { why } = ws.state;
    if (why !== "deleted" && why !== "absent") throw handleOver(ws, why);
    await assertNothingStands(ws, within.signal);
    return false;
  }
  const sandbox = await readExpected(ws, expected, within);
  // The object may go before its pods and claims do, also between two calls.
  const going = sandbox ?? ws.deleteAsked;
  if (!going) {
    if (ws.lateCreates.areSought(ws.id)) throw mayStillBeCreated(ws);
    ws.commit({ t: "vanished", why: "absent" });
    return false;
  }
  if (sandbox) pass(ws, sandbox, fencing);
  await releaseSessions(ws, workspaceDeleting(ws, "a delete"), within);
  ws.deleteAsked = going;
  ws.commit({ t: "deleteBegan" }); // Drops the guest: from here on no data-plane call is admitted.
  if (sandbox && !sandbox.deleting) await send(ws, sandbox, fencing, within);
  await confirmDeleted(ws, going, within);
  ws.commit({ t: "deleted" });
  return sandbox !== undefined && !sandbox.deleting;
}

/** For a handle whose workspace is gone: another one that has its name by now is for a new handle to stop. */
export async function assertNothingStands(ws: Handle, caller: AbortSignal): Promise<void> {
  using within = new Deadline(ws.deps.clock, clusterRequestTimeoutMs, caller);
  if (await ws.deps.cluster.readSandbox(ws.name, within)) throw handleOver(ws, "replaced");
}

/** What is to be deleted. Another object than the caller expects is left alone; one that only this handle did not expect ends it. */
async function readExpected(
  ws: Handle,
  expected: SandboxUid | undefined,
  within: Deadline,
): Promise<SandboxReading | undefined> {
  if (expected === undefined) return await readOwn(ws, within);
  const found = await findOwn(ws, within);
  if (found.t === "absent") return undefined;
  if (found.sandbox.uid !== expected) throw workspaceReplaced(ws, expected, found.sandbox);
  if (found.t === "ours") return found.sandbox;
  ws.commit({ t: "vanished", why: "replaced" });
  throw handleOver(ws, "replaced"); // A new handle may delete it.
}

async function send(ws: Handle, sandbox: SandboxReading, fencing: StopFencing, within: Deadline): Promise<void> {
  const outcome = await deleteObject(ws, sandbox, fencing, within);
  if (outcome.t === "accepted") return;
  // Unknown: it stays deleting, since a late DELETE can still land. No suspend is sent in its place.
  if (outcome.t === "unknown") throw unconfirmed(ws, within, undefined, outcome.cause);
  ws.commit({ t: "deleteRefused" });
  throw outcome.error;
}

/** One look whether the object, its pods and its claims are all gone. */
export async function nothingRemains(ws: Handle, sandbox: SandboxReading, within: Deadline): Promise<boolean> {
  return isNothing(await readRemains(ws, sandbox, within));
}

function readRemains(ws: Handle, sandbox: SandboxReading, within: Deadline): Promise<Remains> {
  const { name, uid, resourceVersion, disk } = sandbox;
  const entries = disk.usable ? disk.entries : disk.claims;
  return ws.deps.cluster.readRemains({ name, uid, resourceVersion, entries }, within);
}

function isNothing({ sandbox, pods, claims }: Remains): boolean {
  return !sandbox && pods.length === 0 && claims.length === 0;
}

async function confirmDeleted(ws: Handle, sandbox: SandboxReading, within: Deadline): Promise<void> {
  using changes = ws.deps.cluster.changes(sandbox.name);
  let remains: Remains | undefined;
  for (;;) {
    try {
      remains = await readRemains(ws, sandbox, within);
      if (isNothing(remains)) return;
    } catch (error) {
      if (within.expired) throw unconfirmed(ws, within, remains, error);
      if (!hasReason(error, "CLUSTER_UNAVAILABLE") && !(error instanceof DeadlineExceeded)) throw error;
    }
    ws.waitingFor = `the end of ${remainsWords(remains)}`;
    try {
      // Claims are not watched, so a look follows soon after the object and its pods are gone.
      await awaitChange(changes, within, remains?.sandbox === false ? claimRereadMs : undefined);
    } catch (error) {
      if (within.expired) throw unconfirmed(ws, within, remains, error);
      throw error;
    }
  }
}

const claimRereadMs = 500;

function unconfirmed(ws: Handle, within: Deadline, remains: Remains | undefined, cause: unknown): HoldfastError {
  return new HoldfastError("DELETE_UNCONFIRMED", {
    message: `Workspace ${ws.id} was asked to be deleted, and that ${remainsWords(remains)} is gone was not confirmed within ${within.budgetMs} ms. Nothing else was sent. Destroy it again to wait again.`,
    metadata: {
      budget_ms: String(within.budgetMs),
      pods: remains?.pods.join(",") ?? "",
      claims: remains?.claims.join(",") ?? "",
    },
    cause,
  });
}

/** L1: an absent object is no proof while a create of ours may land. */
function mayStillBeCreated(ws: Handle): HoldfastError {
  const seconds = String(lateCreateSoughtMs / 1_000);
  return new HoldfastError("DELETE_UNCONFIRMED", {
    message: `Workspace ${ws.id} does not stand, but a create of it that the cluster did not answer may still land. Nothing was sent. Destroy it again; what it finds counts after ${seconds} s at the latest.`,
    metadata: { why: "unanswered_create", sought_seconds: seconds },
  });
}

function remainsWords(remains: Remains | undefined): string {
  if (!remains) return "its object, pod and disk";
  const parts = [remains.sandbox ? ["its object"] : [], remains.pods.map((pod) => `pod ${pod}`)];
  return [...parts.flat(), ...remains.claims.map((claim) => `claim ${claim}`)].join(", ") || "everything";
}
