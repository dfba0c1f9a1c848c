import { type Koffi, nameOfErrno } from "../libc/koffi.ts";
import { refused, waitCallsOf } from "./posix-calls.ts";
import { PosixStart } from "./posix-start.ts";
import { Reaper } from "./reaper.ts";
import type { Program, ProgramStart, Spawner } from "./spawner.ts";

const cloexec = 0o2_000_000;

/**
 * Starts programs by posix_spawn in the very step that asks for it, and holds the event loop up meanwhile: for what has to be known
 * before anything else happens. All else is started by ThreadSpawner.
 */
export class PosixSpawner implements Spawner {
  readonly #start: PosixStart;
  readonly #reaper: Reaper;

  /** Throws where the C library lacks something. */
  constructor(koffi: Koffi, reaper = new Reaper(waitCallsOf(koffi))) {
    this.#start = new PosixStart(koffi);
    this.#reaper = reaper;
  }

  async spawn(start: ProgramStart, admit?: () => void): Promise<Program> {
    admit?.();
    const pid = this.#start.run(start);
    return { pid, exited: this.#reaper.exitOf(pid) };
  }
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
