import type { Deadline } from "@holdfast/async";
import { HoldfastError } from "@holdfast/errors";
import type { ClaimsReading, SandboxReading } from "../ports/cluster.ts";
import type { Handle } from "../state/handle.ts";

export type ClaimUids = Readonly<Record<string, string>>;

/**
 * Reads the claims at a bind. One that differs from a known one means that the disk was replaced by an empty one (L16), which a caller
 * may have accepted.
 */
export async function readClaims(
  ws: Handle,
  sandbox: SandboxReading,
  mayBeReplaced: boolean,
  within: Deadline,
): Promise<ClaimUids> {
  const { uids } = await ws.deps.cluster.readClaims(sandbox, within);
  if (!mayBeReplaced) assertSameDisk(ws, sandbox, { uids, lost: [] });
  return uids;
}

/**
 * L16, before waking: also a known claim that is not there, or on its way out, is a disk that was replaced. The next pod would get an
 * empty one in its place.
 */
export async function assertDiskKept(ws: Handle, sandbox: SandboxReading, within: Deadline): Promise<void> {
  assertSameDisk(ws, sandbox, await ws.deps.cluster.readClaims(sandbox, within));
}

/** True where the record on the object is not what stands, so that an accepted disk must be recorded. */
export function mustRecord(sandbox: SandboxReading, actual: ClaimUids): boolean {
  return differing(recordedClaims(sandbox.stamps.volumeClaimUids), { uids: actual, lost: [] }) !== undefined;
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
      actual = (await ws.deps.cluster.readClaims(sandbox, within)).uids;
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
  if (Object.keys(actual).length === 0 || differing(recorded, { uids: actual, lost: [] })) return undefined;
  // One that could not be read this time keeps its record.
  return { ...recorded, ...actual };
}

/** Parses the record on the object. */
export function recordedClaims(text: string | undefined): ClaimUids {
  const pairs = (text ?? "").split(",").map((pair) => pair.split("="));
  return Object.fromEntries(
    pairs.flatMap(([name, uid]) => (name?.trim() && uid?.trim() ? [[name.trim(), uid.trim()]] : [])),
  );
}

/** Both what the object records and what this handle has seen: whichever is older tells of a disk that was replaced since. */
function assertSameDisk(ws: Handle, sandbox: SandboxReading, actual: ClaimsReading): void {
  const replaced = differing(recordedClaims(sandbox.stamps.volumeClaimUids), actual) ?? differing(ws.claimUids, actual);
  if (replaced) throw diskReplaced(ws, replaced);
}

interface Replaced {
  readonly claim: string;
  readonly expected: string;
  /** Undefined: it is not there, or on its way out. */
  readonly actual: string | undefined;
}

function differing(known: ClaimUids, { uids, lost }: ClaimsReading): Replaced | undefined {
  for (const [claim, expected] of Object.entries(known)) {
    if (lost.includes(claim)) return { claim, expected, actual: undefined };
    const actual = Object.hasOwn(uids, claim) ? uids[claim] : undefined;
    if (actual !== undefined && expected !== actual) return { claim, expected, actual };
  }
  return undefined;
}

function diskReplaced(ws: Handle, { claim, expected, actual }: Replaced): HoldfastError {
  const now = actual === undefined ? "is gone, or on its way out" : `now has ${actual}`;
  return new HoldfastError("WORKSPACE_REPLACED", {
    message: `The disk of workspace ${ws.id} was replaced: claim ${claim} had uid ${expected} and ${now}. Nothing was woken, and no guest was used with it. Restore the volume; to go on with the disk that stands, which may be empty, call with accept_replaced_disk.`,
    metadata: { field: "claim_uid", claim, expected, actual: actual ?? "" },
  });
}
