import { constants } from "node:fs";
import { type Koffi, type NativeFunction, nameOfErrno } from "../libc/koffi.ts";
import type { WaitCalls } from "./reaper.ts";
import type { Stdio } from "./spawner.ts";

/** Larger than posix_spawnattr_t, posix_spawn_file_actions_t, sigset_t and siginfo_t of glibc and musl. */
const structBytes = 512;
const setSigmask = 0x08;
const setSigdef = 0x04;
const setSid = 0x80;
const noHang = 1;
const allChildren = 0;
const exitedChildren = 4;
const leaveStatus = 0x01_00_00_00;
/** In siginfo_t, on every 64-bit Linux. */
const pidInSiginfo = 16;
const firstOwnFd = 3;

/** What the kernel refused, by its `code`. */
export type Refusal = Error & { readonly code: string };

/** What all tries to start one program have in common. */
export interface How {
  readonly actions: Buffer;
  readonly environment: readonly string[];
}

export type SpawnCalls = ReturnType<typeof spawnCallsOf>;

/** posix_spawn and what it takes. Throws where the C library lacks something. */
export function spawnCallsOf(koffi: Koffi) {
  const lib = koffi.load(null);
  const initActions = lib.func("int posix_spawn_file_actions_init(void *actions)");
  const destroyActions = lib.func("int posix_spawn_file_actions_destroy(void *actions)");
  const addDup2 = lib.func("int posix_spawn_file_actions_adddup2(void *actions, int fd, int newfd)");
  const addOpen = lib.func(
    "int posix_spawn_file_actions_addopen(void *actions, int fd, const char *path, int flags, uint32_t mode)",
  );
  const addFchdir = lib.func("int posix_spawn_file_actions_addfchdir_np(void *actions, int fd)");
  const addCloseFrom = closeFromOf(lib);
  const initAttributes = lib.func("int posix_spawnattr_init(void *attributes)");
  const setFlags = lib.func("int posix_spawnattr_setflags(void *attributes, short flags)");
  const setDefault = lib.func("int posix_spawnattr_setsigdefault(void *attributes, void *signals)");
  const setMask = lib.func("int posix_spawnattr_setsigmask(void *attributes, void *signals)");
  const fillSet = lib.func("int sigfillset(void *signals)");
  const emptySet = lib.func("int sigemptyset(void *signals)");
  const posixSpawn = lib.func(
    "int posix_spawn(void *pid, const char *path, void *actions, void *attributes, const char **argv, const char **envp)",
  );
  const checked = (errno: number, call: string): void => {
    if (errno !== 0) throw refused(nameOfErrno(koffi, errno), call);
  };
  return {
    /** A session of its own, no signal blocked, and none ignored: the agent ignores SIGPIPE, and that is inherited. */
    attributes(): Buffer {
      const [attributes, all, none] = [Buffer.alloc(structBytes), Buffer.alloc(structBytes), Buffer.alloc(structBytes)];
      checked(initAttributes(attributes), "posix_spawnattr_init");
      fillSet(all);
      emptySet(none);
      checked(setDefault(attributes, all), "posix_spawnattr_setsigdefault");
      checked(setMask(attributes, none), "posix_spawnattr_setsigmask");
      checked(setFlags(attributes, setSid | setSigdef | setSigmask), "posix_spawnattr_setflags");
      return attributes;
    },
    /** What the new process does before it runs the program in the directory that `cwd` is open on. To be released. */
    actions(stdio: readonly number[] | Exclude<Stdio, readonly unknown[]>, cwd: number): Buffer {
      const actions = Buffer.alloc(structBytes);
      checked(initActions(actions), "posix_spawn_file_actions_init");
      checked(addFchdir(actions, cwd), "posix_spawn_file_actions_addfchdir_np");
      if ("terminal" in stdio) {
        checked(addOpen(actions, 0, stdio.terminal, constants.O_RDWR, 0), "posix_spawn_file_actions_addopen");
      }
      const fds = "terminal" in stdio ? [0, 0, 0] : stdio;
      for (const [at, fd] of fds.entries()) checked(addDup2(actions, fd, at), "posix_spawn_file_actions_adddup2");
      // All of the agent's are closed by exec in any case. A program that is long in being read holds none of them meanwhile.
      if (addCloseFrom) checked(addCloseFrom(actions, firstOwnFd), "posix_spawn_file_actions_addclosefrom_np");
      return actions;
    },
    release(actions: Buffer): void {
      destroyActions(actions);
    },
    /** Undefined: it runs, and the C library has written its number into these four bytes. */
    spawn(pid: Buffer, path: string, argv: readonly string[], how: How, attributes: Buffer): Refusal | undefined {
      const errno = posixSpawn(pid, path, how.actions, attributes, [...argv, null], [...how.environment, null]);
      return errno === 0 ? undefined : refused(nameOfErrno(koffi, errno), path);
    },
  };
}

/** Undefined where the C library has none: glibc has it from 2.34 on. */
function closeFromOf(lib: ReturnType<Koffi["load"]>): NativeFunction | undefined {
  try {
    return lib.func("int posix_spawn_file_actions_addclosefrom_np(void *actions, int from)");
  } catch {
    return undefined; // Nothing depends on it but how soon descriptors are closed.
  }
}

export function waitCallsOf(koffi: Koffi): WaitCalls {
  const lib = koffi.load(null);
  const waitpid = lib.func("int waitpid(int pid, _Out_ int *status, int options)");
  const waitid = lib.func("int waitid(int kind, uint32_t id, void *siginfo, int options)");
  const siginfo = Buffer.alloc(structBytes);
  return {
    anyEnded() {
      siginfo.fill(0);
      // Fails only where there is no child at all.
      if (waitid(allChildren, 0, siginfo, exitedChildren | noHang | leaveStatus) !== 0) return undefined;
      return siginfo.readInt32LE(pidInSiginfo) || undefined;
    },
    wait(pid) {
      const status = [0];
      const result = waitpid(pid, status, noHang);
      if (result < 0) throw refused(nameOfErrno(koffi, koffi.errno()), `waitpid ${pid}`);
      return result === 0 ? undefined : Number(status[0]);
    },
  };
}

export function refused(code: string, what: string): Refusal {
  return Object.assign(new Error(`${code}: ${what}`), { code });
}
