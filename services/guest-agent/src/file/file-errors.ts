import { fileStreamsMax, type Reason, symlinksMax } from "@holdfast/contract";
import { AnsweredError } from "@holdfast/guest-link";

/** A call on a file that was refused. `path` as the caller wrote it. */
export function refused(reason: Reason, path: string, why: string, more: Readonly<Record<string, string>> = {}) {
  return new AnsweredError(reason, `${JSON.stringify(path)}: ${why}`, { path, ...more });
}

/** A path, or another part of a request, that cannot be served as it is. */
export function invalidFile(field: string, why: string): AnsweredError {
  return new AnsweredError("INVALID_REQUEST", `Nothing was done: ${field} ${why}.`, { field });
}

/** What the kernel's answer means to a caller. What is no answer of the kernel is passed on as it is. */
export function fileErrorOf(error: unknown, path: string): unknown {
  if (error instanceof AnsweredError || !(error instanceof Error)) return error;
  const code = "code" in error ? String(error.code) : "";
  const [reason, why] = answers[code] ?? [undefined, undefined];
  if (reason === undefined) return error;
  return refused(reason, path, why, { errno: code });
}

const noAccess = "the guest's user may not do that. Nothing was changed";

const answers: Readonly<Record<string, readonly [Reason, string]>> = {
  ENOENT: ["FILE_NOT_FOUND", "there is no such file"],
  ENOTDIR: ["FILE_NOT_FOUND", "a component before the last is not a directory"],
  ESTALE: ["FILE_NOT_FOUND", "it was removed meanwhile"],
  EEXIST: ["FILE_EXISTS", "something stands there already"],
  EISDIR: ["NOT_REGULAR_FILE", "it is a directory"],
  ENOTEMPTY: ["DIRECTORY_NOT_EMPTY", "the directory is not empty"],
  ENOSPC: ["DISK_FULL", "the disk is full. What stood there before stands there still"],
  EDQUOT: ["DISK_FULL", "the quota of the disk is used up. What stood there before stands there still"],
  EFBIG: ["DISK_FULL", "the file system takes no file of that size. What stood there before stands there still"],
  EACCES: ["FILE_ACCESS_DENIED", noAccess],
  EPERM: ["FILE_ACCESS_DENIED", noAccess],
  EROFS: ["FILE_ACCESS_DENIED", "it is mounted read-only. Nothing was changed"],
  EBUSY: ["FILE_ACCESS_DENIED", "it is in use by the system, as a mount is. It was not changed"],
  ETXTBSY: ["FILE_ACCESS_DENIED", "it is a program that runs. It was not changed"],
  ENAMETOOLONG: ["INVALID_REQUEST", "a component is longer than the file system allows"],
  ELOOP: [
    "INVALID_REQUEST",
    `it leads through more than ${symlinksMax} symbolic links, or one was put in its way meanwhile`,
  ],
  EXDEV: ["INVALID_REQUEST", "the two places are on different mounts. Nothing was moved; copy it instead"],
  EMFILE: [
    "STREAM_CAPACITY",
    `the guest has no descriptor left (it serves ${fileStreamsMax} streams at once). Nothing was changed`,
  ],
  ENFILE: ["STREAM_CAPACITY", "the machine has no descriptor left. Nothing was changed"],
};

/** The kernel's code of an error; "" when it is none of the kernel's. */
export function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}
