import { closeSync } from "node:fs";
import { loadKoffi } from "../libc/koffi.ts";
import { FifoPipes } from "./fifo-pipes.ts";
import { pipeMaker } from "./posix-spawner.ts";

/** A real pipe: programs may open `/dev/stdout` by name, which fails on the socket pairs that Node gives them. Whoever takes it closes it. */
export interface Pipe {
  readonly readFd: number;
  readonly writeFd: number;
}

/** Makes pipes. */
export interface Pipes {
  /** Rejects with the kernel's `code` when the guest has no descriptors left; none was made then. */
  take(count: number): Promise<readonly Pipe[]>;
}

/** By pipe2, or of named pipes below this directory where the addon fits not this machine. */
export function choosePipes(directory: string, koffi = loadKoffi()): Pipes {
  if (koffi === undefined) return new FifoPipes(directory);
  const make = pipeMaker(koffi);
  return {
    async take(count) {
      const made: Pipe[] = [];
      try {
        while (made.length < count) {
          const [readFd, writeFd] = make();
          made.push({ readFd, writeFd });
        }
        return made;
      } catch (error) {
        for (const pipe of made) closePipe(pipe);
        throw error;
      }
    },
  };
}

/** Closes both ends. */
export function closePipe({ readFd, writeFd }: Pipe): void {
  closeSync(readFd);
  closeSync(writeFd);
}
