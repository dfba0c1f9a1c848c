import type { Deadline } from "@holdfast/async";
import { HoldfastError } from "@holdfast/errors";
import type { SandboxReading } from "../ports/cluster.ts";
import type { Handle } from "../state/handle.ts";

export type ClaimUids = Readonly<Record<string, string>>;

/** Reads the claims' uids by name. One that differs from a known one means that the disk was replaced by an empty one (L16). */
export async function readClaims(ws: Handle, sandbox: SandboxReading, within: Deadline): Promise<ClaimUids> {
  const actual = await ws.deps.cluster.readClaimUids(sandbox, within);
  const replaced = differing(knownClaims(ws, sandbox), actual);
  if (replaced) throw diskReplaced(ws, replaced);
  return actual;
}

/** What a suspend records: the uids that are known, or read now; undefined where the record on the object must not be touched. */
export async function claimsToRecord(
  ws: Handle,
  sandbox: SandboxReading,
  within: Deadline,
): Promise<ClaimUids | undefined> {
  const recorded = recordedClaims(sandbox.stamps.volumeClaimUids);
  let actual = ws.claimUids;
  if (Object.keys(actual).length === 0) {
    try {
      actual = await ws.deps.cluster.readClaimUids(sandbox, within);
    } catch (error) {
      // The record only helps a later wake: not being able to refresh it stops no suspend.
      ws.deps.log.warn(
        { workspaceId: ws.id, error },
        "the disk's claims could not be read; their record is left as it is",
      );
      return undefined;
    }
  }
  // A disk that was replaced must be found at the next wake: its record is never overwritten here.
  if (Object.keys(actual).length === 0 || differing(recorded, actual)) return undefined;
  return actual;
}

/** Parses the record on the object. */
export function recordedClaims(text: string | undefined): ClaimUids {
  const pairs = (text ?? "").split(",").map((pair) => pair.split("="));
  return Object.fromEntries(
    pairs.flatMap(([name, uid]) => (name?.trim() && uid?.trim() ? [[name.trim(), uid.trim()]] : [])),
  );
}

function knownClaims(ws: Handle, sandbox: SandboxReading): ClaimUids {
  return { ...recordedClaims(sandbox.stamps.volumeClaimUids), ...ws.claimUids };
}

function differing(
  known: ClaimUids,
  actual: ClaimUids,
): { claim: string; expected: string; actual: string } | undefined {
  for (const [claim, uid] of Object.entries(actual)) {
    const expected = known[claim];
    if (expected !== undefined && expected !== uid) return { claim, expected, actual: uid };
  }
  return undefined;
}

function diskReplaced(ws: Handle, at: { claim: string; expected: string; actual: string }): HoldfastError {
  return new HoldfastError("WORKSPACE_REPLACED", {
    message: `The disk of workspace ${ws.id} was replaced: claim ${at.claim} had uid ${at.expected} and now has ${at.actual}. No guest was used with it. Restore the volume, or destroy the workspace with delete_disk.`,
    metadata: { field: "claim_uid", claim: at.claim, expected: at.expected, actual: at.actual },
  });
}
