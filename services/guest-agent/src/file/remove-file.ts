import { rmdir, unlink } from "node:fs/promises";
import type { RemoveRequest } from "@holdfast/api/holdfast/guest/v1/file_pb";
import type { Effect } from "./effect.ts";
import { fileErrorOf, invalidFile } from "./file-errors.ts";
import { removeDirectory } from "./remove-tree.ts";
import { syncDirectory } from "./sync-directory.ts";
import type { WorkspaceTree } from "./workspace-tree.ts";

/** Removes a file, a symbolic link itself, or a directory. */
export async function removeFile(
  tree: WorkspaceTree,
  request: RemoveRequest,
  effect: Effect,
  signal: AbortSignal,
): Promise<void> {
  const { path } = request;
  using place = await tree.require(path, { follow: false });
  const { entry, within } = place;
  if (within === undefined) throw invalidFile("path", "is the workspace's root, which is never removed");
  const { parent, name } = within;
  try {
    if (!entry.stat.isDirectory()) await effect(() => unlink(parent.at(name)));
    else if (request.recursive) await removeDirectory(parent, name, { signal, effect });
    else await effect(() => rmdir(parent.at(name)));
    await syncDirectory(parent);
  } catch (error) {
    throw fileErrorOf(error, path);
  }
}
