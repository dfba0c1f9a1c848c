import { lstat, rmdir, unlink } from "node:fs/promises";
import { treeDepthMax } from "@holdfast/contract";
import { AnsweredError } from "@holdfast/guest-link";
import type { Descriptor, Name } from "./descriptor.ts";
import { directoryEntries, isDirectory } from "./directory-entries.ts";
import type { Effect } from "./effect.ts";
import { codeOf } from "./file-errors.ts";

/** A directory into which others keep putting files is not emptied for ever. */
const passesMax = 8;

/** Until when a removal goes on. Each batch of entries is one change. */
export interface Removing {
  readonly signal: AbortSignal;
  readonly effect: Effect;
}

/**
 * Removes everything in a directory, each entry through its parent's descriptor: links are removed, never followed. Not atomic: a
 * failure, or the signal, leaves a part.
 */
export async function clearDirectory(directory: Descriptor, removing: Removing, depth = 1): Promise<void> {
  const { signal, effect } = removing;
  if (depth > treeDepthMax) {
    throw new AnsweredError(
      "DIRECTORY_NOT_EMPTY",
      `The tree is deeper than ${treeDepthMax} directories; a part of it was removed. Remove the inner ones first.`,
      { limit: String(treeDepthMax), setting: "treeDepthMax" },
    );
  }
  for await (const batch of directoryEntries(directory)) {
    const inner: Buffer[] = [];
    await effect(() =>
      allSettled(
        batch.map(async (entry) => {
          if (await isDirectory(entry, (name) => lstat(directory.at(name)))) inner.push(entry.name);
          else if (!(await isUnlinked(directory, entry.name))) inner.push(entry.name);
        }),
      ),
    );
    for (const name of inner) {
      signal.throwIfAborted();
      await removeDirectory(directory, name, removing, depth);
    }
    signal.throwIfAborted();
  }
}

/** Removes a directory and everything in it. */
export async function removeDirectory(parent: Descriptor, name: Name, removing: Removing, depth = 0): Promise<void> {
  for (let pass = 1; ; pass += 1) {
    {
      using directory = await parent.pinDirectory(name).catch(whenGone);
      if (directory === undefined) return;
      await clearDirectory(directory, removing, depth + 1);
    }
    try {
      await removing.effect(() => rmdir(parent.at(name)));
      return;
    } catch (error) {
      if (codeOf(error) === "ENOENT") return;
      if (codeOf(error) !== "ENOTEMPTY" || pass >= passesMax) throw error;
    }
  }
}

/** Settles when all have: a failure of one does not leave the others to go on unseen. */
async function allSettled(works: readonly Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(works);
  for (const result of results) if (result.status === "rejected") throw result.reason;
}

/** False when a directory has taken the place of the file. */
async function isUnlinked(parent: Descriptor, name: Name): Promise<boolean> {
  try {
    await unlink(parent.at(name));
    return true;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return true;
    if (codeOf(error) === "EISDIR") return false;
    throw error;
  }
}

function whenGone(error: unknown): undefined {
  if (codeOf(error) !== "ENOENT") throw error;
}
