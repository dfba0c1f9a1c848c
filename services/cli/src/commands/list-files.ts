import { timestampDate } from "@bufbuild/protobuf/wkt";
import { type FileInfo, FileInfoSchema, FileType } from "@holdfast/api/holdfast/v1/file_pb";
import { remoteOf } from "../location.ts";
import { sayJson, write } from "../print.ts";
import { printable } from "../printable.ts";
import type { Session } from "../program.ts";

export interface ListFilesOptions {
  readonly recursive?: true;
  readonly all?: true;
}

const letters: Partial<Record<FileType, string>> = {
  [FileType.REGULAR]: "-",
  [FileType.DIRECTORY]: "d",
  [FileType.SYMLINK]: "l",
  [FileType.FIFO]: "p",
  [FileType.SOCKET]: "s",
  [FileType.DEVICE]: "b",
};

/** Lists as it comes, so that a huge directory needs no memory; sorted within a batch only. */
export async function listFiles({ connection, json, signal }: Session, location: string, options: ListFilesOptions) {
  const { workspaceId, path } = remoteOf(location);
  const { files } = connection;
  const hidden = options.all === true;
  const batches = options.recursive
    ? files.walkFiles({ workspaceId, path, hidden }, { signal })
    : files.listDirectory({ workspaceId, path }, { signal });
  for await (const batch of batches) {
    const shown = batch.files
      .filter((file) => hidden || options.recursive || !nameOf(file).startsWith("."))
      .sort((a, b) => (a.path < b.path ? -1 : 1));
    if (json) for (const file of shown) await sayJson(FileInfoSchema, file, "others");
    else await write(shown.map((file) => lineOf(file, options.recursive ? file.path : nameOf(file))).join(""));
  }
}

function nameOf(file: FileInfo): string {
  return file.path.slice(file.path.lastIndexOf("/") + 1);
}

function lineOf(file: FileInfo, name: string): string {
  const mode = file.mode.toString(8).padStart(4, "0");
  const changed = file.modifiedAt ? timestampDate(file.modifiedAt).toISOString().slice(0, 16).replace("T", " ") : "-";
  const target = file.type === FileType.SYMLINK ? ` -> ${printable(file.linkTarget)}` : "";
  return `${letters[file.type] ?? "?"} ${mode} ${String(file.size).padStart(12)} ${changed} ${printable(name)}${target}\n`;
}
