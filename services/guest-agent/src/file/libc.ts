import { type Koffi, loadKoffi, nameOfErrno } from "../libc/koffi.ts";
import type { Name } from "./descriptor.ts";

/** What the agent needs of the C library that Node does not offer. (docs/decisions/0009-libc-by-koffi.md) */
export interface Libc {
  /** renameat2 with RENAME_NOREPLACE. False: it was not done, for whatever reason. */
  renameNoReplace(source: Name, target: Name): Promise<boolean>;
  /** A new inotify instance, not blocking. Throws what the kernel says. */
  inotifyOpen(): number;
  /** Watches a directory; the number by which its events come. Throws what the kernel says. */
  inotifyAdd(fd: number, path: string, mask: number): number;
  inotifyRemove(fd: number, watch: number): void;
  /** From now on SIGIO comes to this process whenever there is something to read. */
  signalWhenReadable(fd: number): void;
}

const atCwd = -100;
const renameNoReplaceFlag = 1;
const setFlags = 4;
const setOwner = 8;
const asyncFlag = 0o20_000;
const inNonblock = 0o4_000;
const inCloexec = 0o2_000_000;

/** Undefined where neither addon fits this machine: what needs it is refused by name then. */
export function loadLibc(): Libc | undefined {
  const koffi = loadKoffi();
  return koffi && libcOf(koffi);
}

function libcOf(koffi: Koffi): Libc {
  const lib = koffi.load(null);
  const renameat2 = lib.func("int renameat2(int from, const char *source, int to, const char *target, uint32_t flags)");
  const inotifyInit = lib.func("int inotify_init1(int flags)");
  const inotifyAddWatch = lib.func("int inotify_add_watch(int fd, const char *path, uint32_t mask)");
  const inotifyRmWatch = lib.func("int inotify_rm_watch(int fd, int watch)");
  const fcntl = lib.func("int fcntl(int fd, int command, long argument)");
  const checked = (result: number, call: string): number => {
    if (result >= 0) return result;
    const code = nameOfErrno(koffi, koffi.errno());
    throw Object.assign(new Error(`${code}: ${call}`), { code });
  };
  return {
    renameNoReplace: (source, target) =>
      new Promise((resolve, reject) => {
        renameat2.async(
          atCwd,
          source.toString(),
          atCwd,
          target.toString(),
          renameNoReplaceFlag,
          (error: unknown, result: number) => {
            if (error) reject(error);
            else resolve(result === 0);
          },
        );
      }),
    inotifyOpen: () => checked(inotifyInit(inNonblock | inCloexec), "inotify_init1"),
    inotifyAdd: (fd, path, mask) => checked(inotifyAddWatch(fd, path, mask), "inotify_add_watch"),
    signalWhenReadable: (fd) => {
      checked(fcntl(fd, setOwner, process.pid), "fcntl F_SETOWN");
      checked(fcntl(fd, setFlags, inNonblock | asyncFlag), "fcntl F_SETFL");
    },
    inotifyRemove: (fd, watch) => {
      inotifyRmWatch(fd, watch); // It may be gone by itself, with its directory.
    },
  };
}
