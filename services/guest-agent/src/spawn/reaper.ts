import { constants } from "node:os";
import type { ExitStatus } from "./spawner.ts";

/** What the kernel tells of children. */
export interface WaitCalls {
  /** waitpid with WNOHANG: undefined while the child runs. Throws when there is no such child. */
  wait(pid: number): number | undefined;
  /** A child that has ended and whose status nobody has taken, which this does not either; undefined: none. */
  anyEnded(): number | undefined;
}

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
  readonly #calls: WaitCalls;
  readonly #running = new Map<number, (status: ExitStatus) => void>();

  constructor(calls: WaitCalls) {
    this.#calls = calls;
    process.on("SIGCHLD", () => this.#look());
  }

  /**
   * Of a child of which nobody was told before. If it has ended already it is taken, but not before the steps that follow this one: whoever
   * started it can look at it by its pid until then.
   */
  exitOf(pid: number): Promise<ExitStatus> {
    return new Promise((resolve) => {
      this.#running.set(pid, resolve);
      // Its SIGCHLD may have come when its pid was not known here.
      setImmediate(() => this.#running.has(pid) && this.#lookAt(pid));
    });
  }

  /** One after the other as the kernel names them; past one of Node's own, or not known yet, which hides others, by asking for each. */
  #look(): void {
    for (let pid = this.#calls.anyEnded(); pid !== undefined; pid = this.#calls.anyEnded()) {
      if (this.#running.has(pid) && this.#lookAt(pid)) continue;
      for (const mine of [...this.#running.keys()]) this.#lookAt(mine);
      return;
    }
  }

  /** False while it runs. */
  #lookAt(pid: number): boolean {
    const status = this.#statusOf(pid);
    if (status === undefined) return false;
    this.#running.get(pid)?.(status);
    return this.#running.delete(pid);
  }

  #statusOf(pid: number): ExitStatus | undefined {
    try {
      const status = this.#calls.wait(pid);
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
