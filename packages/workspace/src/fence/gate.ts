import type { Deadline } from "@holdfast/async";
import type { SandboxReading } from "../ports/cluster.ts";
import { workspaceDeleting, workspaceNotFound, workspaceReplaced } from "../refusals.ts";
import type { Handle } from "../state/handle.ts";
import { assertNotFenced } from "./holder-epoch.ts";

/** What stands under this handle's name. */
export type Found =
  | { readonly t: "ours"; readonly sandbox: SandboxReading }
  | { readonly t: "absent" }
  | { readonly t: "another"; readonly expected: string; readonly sandbox: SandboxReading };

/** Looks, uncached. The first object that a handle sees is its own; from then on another uid is another workspace (L33). */
export async function findOwn(ws: Handle, within: Deadline): Promise<Found> {
  const sandbox = await ws.deps.cluster.readSandbox(ws.name, within);
  const expected = ws.known?.sandboxUid;
  if (!sandbox || (expected !== undefined && sandbox.uid !== expected)) ws.unresolved.settleAll();
  if (!sandbox) return { t: "absent" };
  if (expected !== undefined && sandbox.uid !== expected) return { t: "another", expected, sandbox };
  ws.remember(sandbox);
  return { t: "ours", sandbox };
}

/** For recipes: the object, or undefined when nothing stands. Another object ends the handle: WORKSPACE_REPLACED. */
export async function readOwn(ws: Handle, within: Deadline): Promise<SandboxReading | undefined> {
  const found = await findOwn(ws, within);
  if (found.t === "ours") return found.sandbox;
  if (found.t === "absent") return undefined;
  ws.commit({ t: "vanished", why: "replaced" });
  throw workspaceReplaced(ws, found.expected, found.sandbox);
}

/**
 * Reads the object before anything irreversible, and lets a write pass or throws with nothing sent (L23). The write is composed from
 * the reading that it returns.
 */
export async function gate(ws: Handle, within: Deadline): Promise<SandboxReading> {
  const sandbox = await readOwn(ws, within);
  if (!sandbox) {
    ws.commit({ t: "vanished", why: "absent" });
    throw workspaceNotFound(ws);
  }
  if (sandbox.deleting) {
    ws.commit({ t: "deletionSeen" });
    throw workspaceDeleting(ws);
  }
  assertNotFenced(sandbox);
  return sandbox;
}
