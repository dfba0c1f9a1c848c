const resetAfterMs = 10 * 60_000;
const maxDelayMs = 30_000;

/** How long a container that ended waits to be started again: at once the first time, then 1, 2, 4 … 30 seconds. */
export class RestartBackoff {
  #restarts = 0;

  /** The wait after a run of that length. A long run starts the series anew. */
  nextMs(ranMs: number): number {
    if (ranMs >= resetAfterMs) this.#restarts = 0;
    const delay = this.#restarts === 0 ? 0 : Math.min(maxDelayMs, 1000 * 2 ** (this.#restarts - 1));
    this.#restarts++;
    return delay;
  }
}
