import { type Dirent, opendir as opendirWithCallback } from "node:fs";
import { promisify } from "node:util";
import { fileBatchMax } from "@holdfast/contract";
import type { Descriptor, Name } from "./descriptor.ts";
import { codeOf } from "./file-errors.ts";

type OpenDir = (path: string, options: { encoding: "buffer"; bufferSize: number }) => Promise<ByteDir>;
const opendir = promisify(opendirWithCallback) as unknown as OpenDir;

/** What Node gives when names are asked for as bytes; its types know only strings. */
interface ByteDir {
  read(): Promise<ByteDirent | null>;
  close(): Promise<void>;
}

export type ByteDirent = Omit<Dirent, "name"> & { readonly name: Buffer };

/** Reads a directory in its own order, in batches, in memory that does not depend on how many entries it has. */
export async function* directoryEntries(directory: Descriptor): AsyncGenerator<readonly ByteDirent[], void, undefined> {
  const dir = await opendir(directory.path, { encoding: "buffer", bufferSize: fileBatchMax });
  try {
    let batch: ByteDirent[] = [];
    for (let entry = await dir.read(); entry !== null; entry = await dir.read()) {
      batch.push(entry);
      if (batch.length < fileBatchMax) continue;
      yield batch;
      batch = [];
    }
    if (batch.length > 0) yield batch;
  } finally {
    await dir.close();
  }
}

/** True for an entry that is a directory, also where the file system does not say it with the name. */
export async function isDirectory(entry: ByteDirent, stat: (name: Name) => Promise<{ isDirectory(): boolean }>) {
  if (entry.isDirectory()) return true;
  const said =
    entry.isFile() ||
    entry.isSymbolicLink() ||
    entry.isFIFO() ||
    entry.isSocket() ||
    entry.isBlockDevice() ||
    entry.isCharacterDevice();
  if (said) return false;
  try {
    return (await stat(entry.name)).isDirectory();
  } catch (error) {
    if (codeOf(error) === "ENOENT") return false;
    throw error;
  }
}
