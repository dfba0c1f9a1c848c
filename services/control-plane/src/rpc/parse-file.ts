import type {
  MakeDirectoryRequest,
  ReadFileRequest,
  WalkFilesRequest,
  WriteFileStart,
} from "@holdfast/api/holdfast/v1/file_pb";
import { walkVisitedMax } from "@holdfast/contract";
import type { MakeDirectoryWish, ReadWish, WalkWish, WriteWish } from "@holdfast/workspace";

export function parseRead({ path, offset, length }: ReadFileRequest): ReadWish {
  return { path, offset: exact(offset), lengthBytes: length === undefined ? undefined : exact(length) };
}

export function parseWrite(start: WriteFileStart): WriteWish {
  return {
    path: start.path,
    mode: start.mode,
    ifAbsent: start.ifAbsent,
    ifUnchanged: start.ifUnchanged || undefined,
    makeParents: start.makeParents,
    sizeBytes: start.size === undefined ? undefined : exact(start.size),
  };
}

export function parseWalk(request: WalkFilesRequest): WalkWish {
  return {
    path: request.path,
    glob: request.glob,
    maxDepth: request.maxDepth || undefined,
    maxEntries: exact(request.maxEntries) || undefined,
    maxVisited: exact(request.maxVisited) || walkVisitedMax,
    hidden: request.hidden,
  };
}

export function parseMakeDirectory({ path, makeParents, mode }: MakeDirectoryRequest): MakeDirectoryWish {
  return { path, makeParents, mode };
}

/** What is beyond exact numbers is beyond any file. */
function exact(value: bigint): number {
  return value > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(value);
}
