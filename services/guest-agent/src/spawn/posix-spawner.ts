import { closeSync, constants, openSync } from "node:fs";
import { type Koffi, nameOfErrno } from "../libc/koffi.ts";
import { endBeforeAgent } from "./oom-score.ts";
import { programPaths } from "./program-paths.ts";
import { Reaper } from "./reaper.ts";
import type { Program, ProgramStart, Spawner } from "./spawner.ts";

/** Larger than posix_spawnattr_t, posix_spawn_file_actions_t and sigset_t of glibc and musl. */
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
const cloexec = 0o2_000_000;
const shell = "/bin/sh";

/** Errors after which execvp tries the next place in PATH. */
const triedOn = new Set(["EACCES", "ENOENT", "ENOTDIR", "ESTALE", "ENODEV", "ETIMEDOUT"]);

/**
 * Starts programs by posix_spawn, which costs the same whatever the agent's size: Node forks, and copies the agent's page tables first.
 * (docs/decisions/0011-posix-spawn.md)
 */
export class PosixSpawner implements Spawner {
  readonly #calls: Calls;
  readonly #attributes: Buffer;
  readonly #reaper: Reaper;

  constructor(koffi: Koffi) {
    this.#calls = callsOf(koffi);
    this.#attributes = this.#calls.attributes();
    this.#reaper = new Reaper(this.#calls);
  }

  async spawn(start: ProgramStart): Promise<Program> {
    const { command, args, env, cwd, stdio, name = command } = start;
    const environment = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    const isOpened = "terminal" in stdio;
    const nothing = !isOpened && stdio.includes(undefined) ? openSync("/dev/null", constants.O_RDWR) : -1;
    const actions = this.#calls.actions(isOpened ? stdio : stdio.map((fd) => fd ?? nothing), cwd);
    try {
      let refusal: Error & { code: string } = refused("ENOENT", command);
      for (const path of programPaths(command, env.PATH, cwd)) {
        const made = this.#tryAt(path, [name, ...args], { actions, environment });
        // In the same step as the process was made: the reaper looks at the next SIGCHLD.
        if (typeof made === "number") {
          endBeforeAgent(made);
          return { pid: made, exited: this.#reaper.exitOf(made) };
        }
        // As execvp: one that may not be executed counts, unless a later one can be.
        if (refusal.code !== "EACCES") refusal = made;
        if (!triedOn.has(made.code)) throw made;
      }
      throw refusal;
    } finally {
      this.#calls.release(actions);
      if (nothing !== -1) closeSync(nothing);
    }
  }

  /** The pid; or why not. What is no program of any kind is a script for the shell, as with execvp. */
  #tryAt(path: string, argv: readonly string[], how: How): number | (Error & { code: string }) {
    const made = this.#calls.spawn(path, argv, how, this.#attributes);
    if (typeof made === "number" || made.code !== "ENOEXEC") return made;
    return this.#calls.spawn(shell, [shell, path, ...argv.slice(1)], how, this.#attributes);
  }
}

/** What all tries to start one program have in common. */
interface How {
  readonly actions: Buffer;
  readonly environment: readonly string[];
}

type Calls = ReturnType<typeof callsOf>;

function callsOf(koffi: Koffi) {
  const lib = koffi.load(null);
  const initActions = lib.func("int posix_spawn_file_actions_init(void *actions)");
  const destroyActions = lib.func("int posix_spawn_file_actions_destroy(void *actions)");
  const addDup2 = lib.func("int posix_spawn_file_actions_adddup2(void *actions, int fd, int newfd)");
  const addOpen = lib.func(
    "int posix_spawn_file_actions_addopen(void *actions, int fd, const char *path, int flags, uint32_t mode)",
  );
  const addChdir = lib.func("int posix_spawn_file_actions_addchdir_np(void *actions, const char *path)");
  const initAttributes = lib.func("int posix_spawnattr_init(void *attributes)");
  const setFlags = lib.func("int posix_spawnattr_setflags(void *attributes, short flags)");
  const setDefault = lib.func("int posix_spawnattr_setsigdefault(void *attributes, void *signals)");
  const setMask = lib.func("int posix_spawnattr_setsigmask(void *attributes, void *signals)");
  const fillSet = lib.func("int sigfillset(void *signals)");
  const emptySet = lib.func("int sigemptyset(void *signals)");
  const posixSpawn = lib.func(
    "int posix_spawn(_Out_ int *pid, const char *path, void *actions, void *attributes, const char **argv, const char **envp)",
  );
  const waitpid = lib.func("int waitpid(int pid, _Out_ int *status, int options)");
  const waitid = lib.func("int waitid(int kind, uint32_t id, void *siginfo, int options)");
  const siginfo = Buffer.alloc(structBytes);
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
    /** To be released. */
    actions(stdio: readonly number[] | { readonly terminal: string }, cwd: string): Buffer {
      const actions = Buffer.alloc(structBytes);
      checked(initActions(actions), "posix_spawn_file_actions_init");
      if ("terminal" in stdio) {
        checked(addOpen(actions, 0, stdio.terminal, constants.O_RDWR, 0), "posix_spawn_file_actions_addopen");
      }
      const fds = "terminal" in stdio ? [0, 0, 0] : stdio;
      for (const [at, fd] of fds.entries()) checked(addDup2(actions, fd, at), "posix_spawn_file_actions_adddup2");
      checked(addChdir(actions, cwd), "posix_spawn_file_actions_addchdir_np");
      return actions;
    },
    release(actions: Buffer): void {
      destroyActions(actions);
    },
    spawn(path: string, argv: readonly string[], how: How, attributes: Buffer): number | (Error & { code: string }) {
      const pid = [0];
      const errno = posixSpawn(pid, path, how.actions, attributes, [...argv, null], [...how.environment, null]);
      return errno === 0 ? Number(pid[0]) : refused(nameOfErrno(koffi, errno), path);
    },
    anyEnded(): number | undefined {
      siginfo.fill(0);
      // Fails only where there is no child at all.
      if (waitid(allChildren, 0, siginfo, exitedChildren | noHang | leaveStatus) !== 0) return undefined;
      return siginfo.readInt32LE(pidInSiginfo) || undefined;
    },
    wait(pid: number): number | undefined {
      const status = [0];
      const result = waitpid(pid, status, noHang);
      if (result < 0) throw refused(nameOfErrno(koffi, koffi.errno()), `waitpid ${pid}`);
      return result === 0 ? undefined : Number(status[0]);
    },
  };
}

function refused(code: string, what: string): Error & { code: string } {
  return Object.assign(new Error(`${code}: ${what}`), { code });
}

/** Makes a pipe that no program inherits unasked: `[to read, to write]`. Throws what the kernel says. */
export function pipeMaker(koffi: Koffi): () => readonly [number, number] {
  const pipe2 = koffi.load(null).func("int pipe2(_Out_ int *fds, int flags)");
  return () => {
    const fds = Buffer.alloc(8);
    if (pipe2(fds, cloexec) !== 0) throw refused(nameOfErrno(koffi, koffi.errno()), "pipe2");
    return [fds.readInt32LE(0), fds.readInt32LE(4)];
  };
}
