import { rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { NodePaths } from "./node-paths.ts";

/** Removes a disk. Out of the way first, in one step, so that a half-removed one is never met under its own name. */
export async function removeDisk(paths: NodePaths, uid: string): Promise<void> {
  const trash = join(paths.trash, uid);
  await rm(trash, { recursive: true, force: true });
  await rename(paths.volume(uid), trash).catch((error: unknown) => {
    if (!isMissing(error)) throw error;
  });
  await rm(paths.claimRecord(uid), { force: true });
  await rm(trash, { recursive: true, force: true });
}

export async function isDisk(paths: NodePaths, uid: string): Promise<boolean> {
  try {
    return (await stat(paths.volume(uid))).isDirectory();
  } catch (error) {
    if (isMissing(error)) return false;
    throw error; // unreadable is not absent
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}
