import { closeSync, constants, openSync } from "node:fs";
import type { Koffi } from "../libc/koffi.ts";
import { openDirectory } from "./directory-handle.ts";
import { endBeforeAgent } from "./oom-score.ts";
import { type How, type Refusal, refused, type SpawnCalls, spawnCallsOf } from "./posix-calls.ts";
import { programPaths } from "./program-paths.ts";
import type { ProgramStart } from "./spawner.ts";

const shell = "/bin/sh";

/** Errors after which execvp tries the next place in PATH. */
const triedOn = new Set(["EACCES", "ENOENT", "ENOTDIR", "ESTALE", "ENODEV", "ETIMEDOUT"]);

/**
 * Starts programs by posix_spawn, which costs the same whatever the agent's size: Node forks, and copies the agent's page tables first.
 * The thread that calls it stands still until the kernel has the new program at hand. (docs/decisions/0011-posix-spawn.md)
 */
export class PosixStart {
  readonly #calls: SpawnCalls;
  readonly #attributes: Buffer;
  readonly #pid: Buffer;

  /** Throws where the C library lacks something. `pid`: four bytes, 0 but for the number of what the last `run` started. */
  constructor(koffi: Koffi, pid: Buffer = Buffer.alloc(4)) {
    this.#calls = spawnCallsOf(koffi);
    this.#attributes = this.#calls.attributes();
    this.#pid = pid;
  }

  /** The number of the program that runs now. Throws what the kernel says, with its `code`; nothing runs then. */
  run({ command, args, env, cwd, stdio, name = command }: ProgramStart): number {
    this.#pid.fill(0);
    const environment = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    const isOpened = "terminal" in stdio;
    const opened = [openDirectory(cwd)];
    let actions: Buffer | undefined;
    try {
      const nothing = !isOpened && stdio.includes(undefined) ? openSync("/dev/null", constants.O_RDWR) : -1;
      if (nothing !== -1) opened.push(nothing);
      actions = this.#calls.actions(isOpened ? stdio : stdio.map((fd) => fd ?? nothing), opened[0] ?? -1);
      let refusal = refused("ENOENT", command);
      for (const path of programPaths(command, env.PATH, cwd)) {
        const why = this.#tryAt(path, [name, ...args], { actions, environment });
        if (why === undefined) {
          const pid = this.#pid.readInt32LE();
          endBeforeAgent(pid);
          return pid;
        }
        // As execvp: one that may not be executed counts, unless a later one can be.
        if (refusal.code !== "EACCES") refusal = why;
        if (!triedOn.has(why.code)) throw why;
      }
      throw refusal;
    } finally {
      if (actions !== undefined) this.#calls.release(actions);
      for (const fd of opened) closeSync(fd);
    }
  }

  /** Why not; undefined: it runs. What is no program of any kind is a script for the shell, as with execvp. */
  #tryAt(path: string, argv: readonly string[], how: How): Refusal | undefined {
    const why = this.#calls.spawn(this.#pid, path, argv, how, this.#attributes);
    if (why?.code !== "ENOEXEC") return why;
    return this.#calls.spawn(this.#pid, shell, [shell, path, ...argv.slice(1)], how, this.#attributes);
  }
}
