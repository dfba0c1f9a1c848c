import { closeSync, constants, openSync, readlinkSync } from "node:fs";
import { codeOf } from "./not-started.ts";
import { type Refusal, refused } from "./posix-calls.ts";

/** The `code` of a start that failed for its directory, whatever stands there by the time that it is told. */
export const directoryRefused = "directory";

/** O_PATH of every Linux that Node runs on: it needs no permission on the directory itself. */
const pathOnly = 0o10_000_000;

const wantsRoom = new Set(["EMFILE", "ENFILE", "ENOMEM"]);

/**
 * The very directory that was looked at, by a descriptor to be closed: a path leads elsewhere as soon as somebody puts a link in its
 * place, and the kernel's "not found" does not say of what. `path`: absolute, links resolved. Throws with `directoryRefused`, or for
 * want of room.
 */
export function openDirectory(path: string): number {
  let fd: number;
  try {
    fd = openSync(path, pathOnly | constants.O_DIRECTORY);
  } catch (error) {
    throw wantsRoom.has(codeOf(error)) ? error : otherNow(path, codeOf(error));
  }
  try {
    if (readlinkSync(inChild(fd)) === path) return fd;
  } catch (error) {
    closeSync(fd);
    throw error;
  }
  closeSync(fd);
  throw otherNow(path, "it leads elsewhere");
}

/** A path by which a child enters it, as long as it has not closed it. */
export function inChild(fd: number): string {
  return `/proc/self/fd/${fd}`;
}

function otherNow(path: string, why: string): Refusal {
  return Object.assign(refused(directoryRefused, path), {
    message: `${path} was removed, moved or replaced while the start waited for its turn (${why})`,
  });
}
