import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "pino";
import { readClaimRecord, writeClaimRecord } from "./claim-record.ts";
import type { NodePaths } from "./node-paths.ts";

export interface OrphanWish {
  readonly paths: NodePaths;
  readonly nodeUid: string;
  /** Up to which version the store is known to have had what it forgets now. */
  readonly provenUpTo: number;
  /** The claims that there are. */
  readonly uids: ReadonlySet<string | undefined>;
  /** Takes away a disk whose claim is known to be deleted. */
  readonly remove: (uid: string) => Promise<void>;
  readonly log: Logger;
}

/**
 * Disks found at the start whose claims are not listed. Absence alone proves nothing: the store may be new, or an
 * older copy put back. It proves a deletion only where this same store (its Node object's uid) had the claim and has
 * moved on since (its resourceVersion), for it forgets an object only by deleting it. Every other disk is kept, and
 * marked: an older copy moves on as well, and must not pass for the store that had the claim at a later start.
 */
export async function sortOrphanDisks({ paths, nodeUid, provenUpTo, uids, remove, log }: OrphanWish): Promise<void> {
  await rm(paths.trash, { recursive: true, force: true });
  await mkdir(paths.trash, { recursive: true, mode: 0o700 });
  for (const entry of await readdir(paths.volumes, { withFileTypes: true })) {
    if (entry.name.endsWith(".claim.json.new")) {
      await rm(join(paths.volumes, entry.name), { force: true }); // never became a record
      continue;
    }
    const uid = entry.name.replace(/\.claim\.json$/, "");
    if (uids.has(uid)) continue;
    const record = await readClaimRecord(paths, uid);
    const deleted =
      record?.store === nodeUid && record.kept !== true && Number.parseInt(record.resourceVersion, 10) <= provenUpTo;
    if (deleted) await remove(uid);
    else if (entry.isDirectory()) {
      log.warn({ path: paths.volume(uid), claim: record }, "a disk without a claim was found; it is kept");
      if (record !== undefined) await writeClaimRecord(paths, uid, { ...record, kept: true });
    }
  }
}
