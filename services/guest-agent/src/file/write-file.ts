import * as fs from "node:fs";
import { link, lstat, rename, unlink } from "node:fs/promises";
import { promisify } from "node:util";
import type { WriteRequest } from "@holdfast/api/holdfast/guest/v1/file_pb";
import type { Upload } from "@holdfast/guest-link";
import type { Descriptor } from "./descriptor.ts";
import type { Effect } from "./effect.ts";
import { codeOf, fileErrorOf, refused } from "./file-errors.ts";
import { etagOf, type FileInfoInit, infoOf } from "./file-info.ts";
import { checkMode } from "./file-mode.ts";
import { assertRegular } from "./regular-file.ts";
import type { StagedFile, Staging } from "./staging.ts";
import { syncDirectory } from "./sync-directory.ts";
import type { WorkspaceTree } from "./workspace-tree.ts";

const writev = promisify(fs.writev);
const fsync = promisify(fs.fsync);
const fchmod = promisify(fs.fchmod);
const fchown = promisify(fs.fchown);

/** What a write works with. */
export interface WriteNeeds {
  readonly tree: WorkspaceTree;
  readonly staging: Staging;
  readonly effect: Effect;
}

/**
 * Replaces or makes a file: bytes go to a staged file, which gets its mode and owner, is synced, and only then takes the name; then the
 * directory is synced. Up to the rename any failure leaves what stood there untouched (G27).
 */
export async function writeFile(
  { tree, staging, effect }: WriteNeeds,
  request: WriteRequest,
  upload: Upload,
  signal: AbortSignal,
): Promise<FileInfoInit> {
  const { path } = request;
  checkMode(request.mode);
  using place = await tree.resolve(path, {
    follow: true,
    ...(request.makeParents ? { makeParents: effect } : {}),
  });
  const { within, entry } = place;
  if (within === undefined) throw refused("NOT_REGULAR_FILE", path, "it is the workspace's root, a directory");
  const { parent, name } = within;
  const old = entry?.stat;
  assertWished(old, request);
  const staged = await staging.create(parent);
  try {
    await receive(staged.file, request, upload);
    await dress(staged.file, old, request.mode);
    await fsync(staged.file.fd);
    signal.throwIfAborted();
    // As late as can be: between this look and the rename, some microseconds, another's change would go unnoticed.
    if (request.ifUnchanged !== "") assertWished(await standing(parent, name), request);
    await effect(() => putInPlace(staged, parent, name, request));
    await durable(parent, path);
    return await infoOf({ path: place.path, rawName: undefined }, await staged.file.stat(), undefined);
  } finally {
    await staged.discard();
  }
}

/** Refuses what the caller's conditions forbid. */
function assertWished(old: fs.BigIntStats | undefined, request: WriteRequest): void {
  const { path, ifAbsent, ifUnchanged } = request;
  if (old === undefined && ifUnchanged !== "") {
    throw refused("FILE_CHANGED", path, "it is gone. Nothing was written", { expected: ifUnchanged, etag: "" });
  }
  if (old === undefined) return;
  if (ifAbsent) throw refused("FILE_EXISTS", path, "it exists already. It was not changed");
  assertRegular(old, path);
  if (ifUnchanged === "" || ifUnchanged === etagOf(old)) return;
  throw refused("FILE_CHANGED", path, "it was changed by somebody else meanwhile. It was left as it is", {
    expected: ifUnchanged,
    etag: etagOf(old),
  });
}

async function receive(file: Descriptor, request: WriteRequest, upload: Upload): Promise<void> {
  const { path, size } = request;
  let written = 0;
  for (let parts = await upload.read(); parts !== undefined; parts = await upload.read()) {
    const bytes = parts.reduce((sum, part) => sum + part.length, 0);
    if (size !== undefined && BigInt(written + bytes) > size) throw wrongSize(path, size, `more than ${size}`);
    await writeAll(file, parts, bytes, written);
    written += bytes;
  }
  if (size !== undefined && BigInt(written) !== size) throw wrongSize(path, size, String(written));
}

async function writeAll(file: Descriptor, parts: readonly Buffer[], bytes: number, position: number): Promise<void> {
  let { bytesWritten } = await writev(file.fd, parts, position);
  if (bytesWritten === bytes) return;
  const all = Buffer.concat(parts);
  while (bytesWritten < bytes) {
    const more = await writev(file.fd, [all.subarray(bytesWritten)], position + bytesWritten);
    bytesWritten += more.bytesWritten;
  }
}

function wrongSize(path: string, size: bigint, came: string) {
  const why = `${size} bytes were announced and ${came} came. Nothing was written`;
  return refused("INVALID_REQUEST", path, why, { field: "size", size: String(size) });
}

/** Gives the staged file the owner and mode that it is to have. The owner first: a change of it clears the set-id bits. */
async function dress(file: Descriptor, old: fs.BigIntStats | undefined, wished: number | undefined): Promise<void> {
  const mode = wished ?? (old === undefined ? 0o644 : Number(old.mode & 0o7777n));
  const own = await file.stat();
  const othersFile = old !== undefined && (old.uid !== own.uid || old.gid !== own.gid);
  const ownerKept =
    !othersFile || (await fchown(file.fd, Number(old.uid), Number(old.gid)).then(() => true, ifForbidden));
  // A program that ran as its owner must not come to run as us.
  await fchmod(file.fd, ownerKept ? mode : mode & ~0o6000);
}

/** Only a privileged agent can give files away; another one replaces the file as its own. */
function ifForbidden(error: unknown): false {
  if (codeOf(error) === "EPERM") return false;
  throw error;
}

async function standing(parent: Descriptor, name: string): Promise<fs.BigIntStats | undefined> {
  try {
    return await lstat(parent.at(name), { bigint: true });
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

async function putInPlace(staged: StagedFile, parent: Descriptor, name: string, request: WriteRequest): Promise<void> {
  try {
    if (!request.ifAbsent) {
      await rename(staged.folder.at(staged.name), parent.at(name));
      return;
    }
    // A link fails where a rename would replace: two writers that both found nothing are told apart.
    await link(staged.folder.at(staged.name), parent.at(name));
    await unlink(staged.folder.at(staged.name));
  } catch (error) {
    throw fileErrorOf(error, request.path);
  }
}

async function durable(parent: Descriptor, path: string): Promise<void> {
  try {
    await syncDirectory(parent);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw refused(
      "FLUSH_UNCONFIRMED",
      path,
      `the new content is in place, but a crash of the machine may still bring the old one back: ${why}`,
    );
  }
}
