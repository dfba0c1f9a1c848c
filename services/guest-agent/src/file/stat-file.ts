import type { FileInfoInit } from "./file-info.ts";
import { infoOf } from "./file-info.ts";
import type { Place, WorkspaceTree } from "./workspace-tree.ts";

/** Describes a file; a symbolic link itself. */
export async function statFile(tree: WorkspaceTree, path: string): Promise<FileInfoInit> {
  using place = await tree.require(path, { follow: false });
  return placeInfo(place, place.entry);
}

/** What is known of an entry that was found at a place. */
export function placeInfo(place: Place, entry: NonNullable<Place["entry"]>): Promise<FileInfoInit> {
  return infoOf({ path: place.path, rawName: undefined }, entry.stat, place.within);
}
