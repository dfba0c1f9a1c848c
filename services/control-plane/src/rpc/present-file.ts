import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  FileChangeKind,
  type FileInfoSchema,
  FileType,
  type ReadFileResponseSchema,
  type WatchDirectoryResponseSchema,
} from "@holdfast/api/holdfast/v1/file_pb";
import { fileBatchMax, fileChunkMaxBytes } from "@holdfast/contract";
import type { FileInfo, ReadEvent, WatchEvent } from "@holdfast/workspace";
import { timestampOf } from "./protobuf-time.ts";

const types = {
  regular: FileType.REGULAR,
  directory: FileType.DIRECTORY,
  symlink: FileType.SYMLINK,
  fifo: FileType.FIFO,
  socket: FileType.SOCKET,
  device: FileType.DEVICE,
  other: FileType.UNSPECIFIED,
} as const satisfies Record<FileInfo["type"], FileType>;

const changes = {
  created: FileChangeKind.CREATED,
  modified: FileChangeKind.MODIFIED,
  removed: FileChangeKind.REMOVED,
} as const;

export function presentFile(file: FileInfo): MessageInitShape<typeof FileInfoSchema> {
  return {
    path: file.path,
    ...(file.rawName && { rawName: file.rawName }),
    type: types[file.type],
    size: BigInt(file.sizeBytes),
    mode: file.mode,
    modifiedAt: timestampOf(file.modifiedAtMs),
    etag: file.etag ?? "",
    linkTarget: file.linkTarget ?? "",
  };
}

/** One event of a read: one response, or several where a piece is larger than a chunk may be. */
export function* presentRead(event: ReadEvent): Generator<MessageInitShape<typeof ReadFileResponseSchema>> {
  if (event.t === "opened") {
    yield { event: { case: "opened", value: presentFile(event.file) } };
    return;
  }
  for (let at = 0; at < event.data.byteLength; at += fileChunkMaxBytes) {
    const data = event.data.subarray(at, at + fileChunkMaxBytes);
    yield { event: { case: "chunk", value: { offset: BigInt(event.offset + at), data } } };
  }
}

/** What one message of a listing may take: clients refuse one beyond 4 MiB, and 500 entries of the longest paths are more. */
const batchMaxBytes = 1024 * 1024;

/** A batch as responses: each of so many files that any client takes it. */
export function* presentBatch(
  batch: readonly FileInfo[],
): Generator<{ files: MessageInitShape<typeof FileInfoSchema>[] }> {
  let files: MessageInitShape<typeof FileInfoSchema>[] = [];
  let bytes = 0;
  for (const file of batch) {
    const takes = sizeOf(file);
    if (files.length === fileBatchMax || (files.length > 0 && bytes + takes > batchMaxBytes)) {
      yield { files };
      files = [];
      bytes = 0;
    }
    files.push(presentFile(file));
    bytes += takes;
  }
  if (files.length > 0) yield { files };
}

/** At most what an entry takes on the wire: three bytes a character, and its numbers. */
function sizeOf({ path, linkTarget, rawName }: FileInfo): number {
  return 3 * (path.length + (linkTarget?.length ?? 0)) + (rawName?.byteLength ?? 0) + 256;
}

export function presentWatch(event: WatchEvent): MessageInitShape<typeof WatchDirectoryResponseSchema> {
  switch (event.t) {
    case "watching":
      return { event: { case: "watching", value: { directories: event.directories } } };
    case "change": {
      const { kind, path, rawName } = event;
      return { event: { case: "change", value: { kind: changes[kind], path, ...(rawName && { rawName }) } } };
    }
    case "overflow":
      return { event: { case: "overflow", value: { cause: event.cause } } };
  }
}
