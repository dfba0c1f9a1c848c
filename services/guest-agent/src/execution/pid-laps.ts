import { readFileSync } from "node:fs";

/** Within this nobody gives out all pids, of which a kernel has at least 32,768. */
const sightsApartMaxMs = 500;

/**
 * Whether the count of pids has begun anew, as far as can be told from looking at it now and then. Pids are given out upwards: while the
 * lap is the same, all that was started after a process has a greater pid.
 */
export class PidLaps {
  readonly #monotonicMs: () => number;
  #lap = 0;
  #lastPid = 0;
  #seenAtMs = Number.NEGATIVE_INFINITY;

  constructor(monotonicMs = (): number => performance.now()) {
    this.#monotonicMs = monotonicMs;
  }

  /** The lap in which this pid was given out just now. */
  see(pid: number): number {
    const nowMs = this.#monotonicMs();
    if (pid < this.#lastPid || nowMs - this.#seenAtMs > sightsApartMaxMs) this.#lap += 1;
    this.#lastPid = pid;
    this.#seenAtMs = nowMs;
    return this.#lap;
  }
}

/** The pid that was given out last in this pid namespace. Throws where that cannot be read. */
export function lastPid(): number {
  return Number(readFileSync("/proc/loadavg", "latin1").trim().split(" ").at(-1));
}
