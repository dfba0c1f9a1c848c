import type { BigIntStats } from "node:fs";
import { link, lstat, rename, unlink } from "node:fs/promises";
import type { MoveRequest } from "@holdfast/api/holdfast/guest/v1/file_pb";
import type { Name } from "./descriptor.ts";
import type { Effect } from "./effect.ts";
import { codeOf, fileErrorOf, invalidFile, refused } from "./file-errors.ts";
import type { FileInfoInit } from "./file-info.ts";
import { infoOf } from "./file-info.ts";
import type { Libc } from "./libc.ts";
import { syncDirectory } from "./sync-directory.ts";
import type { Place, WorkspaceTree } from "./workspace-tree.ts";

/** Renames, durably. A symbolic link is moved itself. */
export async function moveFile(
  tree: WorkspaceTree,
  libc: Libc | undefined,
  request: MoveRequest,
  effect: Effect,
): Promise<FileInfoInit> {
  using from = await tree.require(request.from, { follow: false });
  using to = await tree.resolve(request.to, { follow: false });
  if (from.within === undefined) throw invalidFile("from", "is the workspace's root, which is never moved");
  if (to.within === undefined) throw refused("FILE_EXISTS", request.to, "it is the workspace's root");
  if (to.entry !== undefined && !request.replace) throw standsThere(request.to);
  const source = from.within.parent.at(from.within.name);
  const target = to.within.parent.at(to.within.name);
  try {
    await effect(() =>
      request.replace
        ? renameOver(source, target, from, to)
        : renameToNothing(libc, source, target, from.entry.stat.isDirectory()),
    );
    await syncDirectory(to.within.parent);
    await syncDirectory(from.within.parent);
    using moved = await to.within.parent.pin(to.within.name);
    return await infoOf({ path: to.path, rawName: undefined }, await moved.stat(), to.within);
  } catch (error) {
    throw moveErrorOf(error, request);
  }
}

/**
 * Renames whatever has the new name out of the way. The kernel leaves two names of one file both as they are, and calls it done: then
 * the old name is removed here, if the new one still is that file.
 */
async function renameOver(source: Name, target: Name, from: Place, to: Place): Promise<void> {
  await rename(source, target);
  if (!isSame(from.entry?.stat, to.entry?.stat)) return;
  const parents = await Promise.all([from, to].map((place) => place.within?.parent.stat()));
  if (from.within?.name === to.within?.name && isSame(parents[0], parents[1])) return; // Onto itself.
  const [left, right] = await Promise.all([source, target].map((name) => lstat(name, { bigint: true }).catch(gone)));
  if (isSame(left, right)) await unlink(source);
}

function isSame(one: BigIntStats | undefined, other: BigIntStats | undefined): boolean {
  return one !== undefined && one.ino === other?.ino && one.dev === other.dev;
}

function gone(error: unknown): undefined {
  if (codeOf(error) !== "ENOENT") throw error;
}

/** Renames only while nothing has the new name, however many try at once. */
async function renameToNothing(
  libc: Libc | undefined,
  source: Name,
  target: Name,
  isDirectory: boolean,
): Promise<void> {
  if (await libc?.renameNoReplace(source, target)) return;
  // Refused, or not known to the kernel or the file system: the steps below find out which, and do the same with a moment in between.
  if (isDirectory) {
    const stands = await lstat(target).then(() => true, absent);
    if (stands) throw standsThere(target.toString());
    await rename(source, target); // One that came in between is replaced only if it is an empty directory.
    return;
  }
  await link(source, target);
  await unlink(source);
}

function absent(error: unknown): false {
  if (codeOf(error) === "ENOENT") return false;
  throw error;
}

function moveErrorOf(error: unknown, request: MoveRequest): unknown {
  const code = codeOf(error);
  if (code === "EEXIST" && request.replace)
    return fileErrorOf(Object.assign(new Error(), { code: "ENOTEMPTY" }), request.to);
  if (code === "EEXIST") return standsThere(request.to);
  if (code === "EISDIR") return refused("FILE_EXISTS", request.to, "a directory is not replaced by a file");
  if (code === "ENOTDIR") return refused("FILE_EXISTS", request.to, "a file is not replaced by a directory");
  if (code === "EINVAL") return invalidFile("to", "lies inside what is to be moved");
  return fileErrorOf(error, code === "ENOENT" ? request.from : request.to);
}

function standsThere(path: string) {
  return refused("FILE_EXISTS", path, "something stands there already. Nothing was moved");
}
