import { chmod, mkdir } from "node:fs/promises";
import type { MakeDirectoryRequest } from "@holdfast/api/holdfast/guest/v1/file_pb";
import type { Effect } from "./effect.ts";
import { codeOf, fileErrorOf, refused } from "./file-errors.ts";
import { type FileInfoInit, infoOf } from "./file-info.ts";
import { checkMode } from "./file-mode.ts";
import { placeInfo } from "./stat-file.ts";
import { syncDirectory } from "./sync-directory.ts";
import type { WorkspaceTree } from "./workspace-tree.ts";

/** Makes a directory, durably. */
export async function makeDirectory(
  tree: WorkspaceTree,
  request: MakeDirectoryRequest,
  effect: Effect,
): Promise<FileInfoInit> {
  const { path, makeParents, mode } = request;
  checkMode(mode);
  // One that stands already may be reached through a link; without that wish even a link is something that stands there.
  using place = await tree.resolve(path, { follow: makeParents, ...(makeParents ? { makeParents: effect } : {}) });
  const { entry, within } = place;
  if (entry !== undefined || within === undefined) {
    if (entry?.stat.isDirectory() && makeParents) return placeInfo(place, entry);
    throw refused("FILE_EXISTS", path, "something stands there already. It was not changed");
  }
  try {
    using made = await effect(async () => {
      await mkdir(within.parent.at(within.name), 0o755);
      const directory = await within.parent.pinDirectory(within.name);
      if (mode !== undefined) await chmod(directory.path, mode);
      return directory;
    });
    await syncDirectory(within.parent);
    return await infoOf({ path: place.path, rawName: undefined }, await made.stat(), within);
  } catch (error) {
    if (codeOf(error) === "EEXIST" && makeParents) return makeDirectory(tree, request, effect); // Somebody else made it.
    throw fileErrorOf(error, path);
  }
}
