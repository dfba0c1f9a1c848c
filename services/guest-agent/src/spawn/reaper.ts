import { constants } from "node:os";
import type { ExitStatus } from "./spawner.ts";

/** waitpid with WNOHANG: undefined while the child runs. Throws when there is no such child. */
export type Wait = (pid: number) => number | undefined;

/** The name of a signal as Node tells it; those without one by their number. */
const namesOfSignals = new Map<number, NodeJS.Signals>();
for (const [name, number] of Object.entries(constants.signals)) {
  if (!namesOfSignals.has(number)) namesOfSignals.set(number, name as NodeJS.Signals);
}

/**
 * Takes the exit statuses of children that Node does not know of. Each is asked for by its pid, so that none of Node's own is taken
 * from it.
 */
export class Reaper {
  readonly #wait: Wait;
  readonly #running = new Map<number, (status: ExitStatus) => void>();

  constructor(wait: Wait) {
    this.#wait = wait;
    process.on("SIGCHLD", () => this.#look());
  }

  /** Of a child that was made in the same synchronous step: its end has not been looked for yet. */
  exitOf(pid: number): Promise<ExitStatus> {
    return new Promise((resolve) => this.#running.set(pid, resolve));
  }

  #look(): void {
    for (const [pid, resolve] of this.#running) {
      const status = this.#statusOf(pid);
      if (status === undefined) continue;
      this.#running.delete(pid);
      resolve(status);
    }
  }

  #statusOf(pid: number): ExitStatus | undefined {
    try {
      const status = this.#wait(pid);
      return status === undefined ? undefined : readStatus(status);
    } catch (error) {
      // Somebody else has taken it, which nothing in the agent does. How it ended is lost; that it ended is not.
      console.error(`the exit status of process ${pid} is lost:`, error);
      return { code: 255 };
    }
  }
}

/** What waitpid says. */
function readStatus(status: number): ExitStatus {
  const signal = status & 0x7f;
  if (signal === 0) return { code: (status >> 8) & 0xff };
  return { signal: namesOfSignals.get(signal) ?? (`SIG${signal}` as NodeJS.Signals) };
}
