import type { Deadline } from "@holdfast/async";
import type { HolderEpoch } from "@holdfast/contract";
import type { SandboxReading } from "../ports/cluster.ts";
import { workspaceDeleting, workspaceNotFound, workspaceReplaced } from "../refusals.ts";
import type { Handle } from "../state/handle.ts";
import type { Fencing } from "./fencing.ts";
import { epochToStore } from "./holder-epoch.ts";

/** What stands under this handle's name. */
export type Found =
  | { readonly t: "ours"; readonly sandbox: SandboxReading }
  | { readonly t: "absent" }
  | { readonly t: "another"; readonly expected: string; readonly sandbox: SandboxReading };

/** Looks, uncached. The first object that a handle sees is its own; from then on another uid is another workspace (L33). */
export async function findOwn(ws: Handle, within: Deadline): Promise<Found> {
  const { asOf } = ws.unresolved;
  const sandbox = await ws.deps.cluster.readSandbox(ws.name, within);
  const expected = ws.known?.sandboxUid;
  if (!sandbox || (expected !== undefined && sandbox.uid !== expected)) ws.unresolved.settleAll(asOf);
  if (!sandbox) return { t: "absent" };
  if (expected !== undefined && sandbox.uid !== expected) return { t: "another", expected, sandbox };
  ws.remember(sandbox, asOf);
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

/** What the gate let pass: a write is composed from this reading, and from no other. */
export interface Passed {
  readonly sandbox: SandboxReading;
  /** To be stored by the same write; undefined: the stored one is left as it is. */
  readonly epoch: HolderEpoch | undefined;
}

/**
 * Reads the object, uncached, before anything irreversible, and lets the call pass or throws with nothing sent (L21, L23). The write is
 * composed from the reading that it returns; on another reading the gate is asked again.
 */
export async function gate(ws: Handle, fencing: Fencing, within: Deadline): Promise<Passed> {
  const sandbox = await requireStanding(ws, within);
  return pass(ws, sandbox, fencing);
}

/** Lets a call pass on what this reading shows, or throws (L21). */
export function pass(ws: Handle, sandbox: SandboxReading, fencing: Fencing): Passed {
  const epoch = epochToStore(sandbox, fencing);
  ws.actingUnder = epoch ?? (fencing.t === "epoch" ? fencing.epoch : undefined);
  const stored = sandbox.stamps.holderEpoch;
  if (fencing.t === "ignore_fence" && stored !== undefined) {
    ws.deps.log.warn(
      { workspaceId: ws.id, by: fencing.by, stored },
      "a call acts on this workspace ignoring its fence",
    );
  }
  return { sandbox, epoch };
}

/** The gate of what writes nothing: an object that stands, whoever holds it. */
export async function requireStanding(ws: Handle, within: Deadline): Promise<SandboxReading> {
  const sandbox = await readOwn(ws, within);
  if (!sandbox) {
    ws.commit({ t: "vanished", why: "absent" });
    throw workspaceNotFound(ws);
  }
  if (sandbox.deleting) {
    ws.commit({ t: "deletionSeen" });
    throw workspaceDeleting(ws);
  }
  return sandbox;
}
