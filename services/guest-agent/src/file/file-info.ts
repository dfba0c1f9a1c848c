import { isUtf8 } from "node:buffer";
import { type BigIntStats, constants } from "node:fs";
import { readlink } from "node:fs/promises";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type FileInfoSchema, FileType } from "@holdfast/api/holdfast/guest/v1/file_pb";
import type { Descriptor, Name } from "./descriptor.ts";

export type FileInfoInit = MessageInitShape<typeof FileInfoSchema> & { readonly path: string };

/** A place below the root, as it is told: whether `path` names it, or bytes had to be replaced. */
export interface Told {
  readonly path: string;
  /** The last component's bytes, set when `path` does not name the file. */
  readonly rawName: Buffer | undefined;
}

/** The place of an entry of a directory. */
export function toldOf(directory: Told, name: Name): Told {
  const text = name.toString();
  const path = directory.path === "" ? text : `${directory.path}/${text}`;
  const named = directory.rawName === undefined && (typeof name === "string" || isUtf8(name));
  return { path, rawName: named ? undefined : Buffer.from(name) };
}

/** What is known of a file. `link` is where a symbolic link can be read. */
export async function infoOf(told: Told, stat: BigIntStats, link: { parent: Descriptor; name: Name } | undefined) {
  const type = typeOf(stat);
  const linkTarget =
    type === FileType.SYMLINK && link ? await readlink(link.parent.at(link.name)).catch(() => undefined) : undefined;
  return {
    path: told.path,
    ...(told.rawName === undefined ? {} : { rawName: told.rawName }),
    type,
    size: stat.size,
    mode: Number(stat.mode & 0o7777n),
    modifiedAt: timestampOf(stat.mtimeNs),
    ...(type === FileType.REGULAR ? { etag: etagOf(stat) } : {}),
    ...(linkTarget === undefined ? {} : { linkTarget }), // Absent when the link was replaced meanwhile.
  } satisfies FileInfoInit;
}

/**
 * Changes when the file is replaced or its content, mode or number of names changes. Two changes in place that keep the size, within
 * one tick of the kernel's clock, cannot be told apart. The device is left out: a disk gets another one in its next pod.
 */
export function etagOf(stat: BigIntStats): string {
  return [stat.ino, stat.size, stat.mtimeNs, stat.ctimeNs].map((part) => part.toString(36)).join("-");
}

const types: Readonly<Record<number, FileType>> = {
  [constants.S_IFREG]: FileType.REGULAR,
  [constants.S_IFDIR]: FileType.DIRECTORY,
  [constants.S_IFLNK]: FileType.SYMLINK,
  [constants.S_IFIFO]: FileType.FIFO,
  [constants.S_IFSOCK]: FileType.SOCKET,
  [constants.S_IFBLK]: FileType.DEVICE,
  [constants.S_IFCHR]: FileType.DEVICE,
};

function typeOf(stat: BigIntStats): FileType {
  return types[Number(stat.mode) & constants.S_IFMT] ?? FileType.UNSPECIFIED;
}

/** Times before 1970 have negative seconds and nanoseconds that count forwards. */
function timestampOf(ns: bigint): { readonly seconds: bigint; readonly nanos: number } {
  const nanos = ((ns % 1_000_000_000n) + 1_000_000_000n) % 1_000_000_000n;
  return { seconds: (ns - nanos) / 1_000_000_000n, nanos: Number(nanos) };
}
