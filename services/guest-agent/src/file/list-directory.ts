import type { BigIntStats } from "node:fs";
import { lstat } from "node:fs/promises";
import type { Descriptor } from "./descriptor.ts";
import { type ByteDirent, directoryEntries } from "./directory-entries.ts";
import { codeOf, fileErrorOf, refused } from "./file-errors.ts";
import { type FileInfoInit, infoOf, type Told, toldOf } from "./file-info.ts";
import { type Entry, type Place, stagingName, type WorkspaceTree } from "./workspace-tree.ts";

/** Lists one directory, in the order of the file system. What goes while it is listed may be in the list or not. */
export async function* listDirectory(tree: WorkspaceTree, path: string, signal: AbortSignal) {
  using place = await requireDirectory(tree, path);
  try {
    const told = { path: place.path, rawName: undefined };
    for await (const batch of directoryEntries(place.entry.pinned)) {
      signal.throwIfAborted();
      yield await infosOf(place.entry.pinned, told, batch.filter(isShown));
    }
  } catch (error) {
    throw fileErrorOf(error, path);
  }
}

/** The directory that a path leads to, links followed. NOT_DIRECTORY for anything else. */
export async function requireDirectory(tree: WorkspaceTree, path: string): Promise<Place & { readonly entry: Entry }> {
  const place = await tree.require(path, { follow: true });
  if (place.entry.stat.isDirectory()) return place;
  place[Symbol.dispose]();
  throw refused("NOT_DIRECTORY", path, "it is not a directory");
}

/** What is known of each entry; those that are gone already are left out. */
export async function infosOf(directory: Descriptor, told: Told, entries: readonly ByteDirent[]) {
  const infos = await Promise.all(entries.map((entry) => entryInfo(directory, told, entry.name)));
  return infos.filter((info) => info !== undefined);
}

/** What is known of an entry; undefined when it is gone. */
export async function entryInfo(directory: Descriptor, told: Told, name: Buffer): Promise<FileInfoInit | undefined> {
  let stat: BigIntStats;
  try {
    stat = await lstat(directory.at(name), { bigint: true });
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
  return infoOf(toldOf(told, name), stat, { parent: directory, name });
}

const hiddenStaging = Buffer.from(stagingName);

/** False for the agent's own folder. */
export function isShown(entry: { readonly name: Buffer }): boolean {
  return !entry.name.equals(hiddenStaging);
}
