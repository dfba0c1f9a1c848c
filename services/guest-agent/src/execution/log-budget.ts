import { executionLogsMaxBytes } from "@holdfast/contract";

/** A log, as its budget sees it. */
interface Budgeted {
  readonly keptBytes: number;
  drop(bytes: number): number;
}

/** Keeps all logs of a guest together below a bound: those of ended commands give way first, the oldest before the others. */
export class LogBudget {
  readonly #maxBytes: number;
  /** In the order in which they were made; those of ended commands in the order in which these ended. */
  readonly #running = new Set<Budgeted>();
  readonly #ended = new Set<Budgeted>();
  #bytes = 0;

  constructor(maxBytes = executionLogsMaxBytes) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  add(log: Budgeted): void {
    this.#running.add(log);
  }

  ended(log: Budgeted): void {
    if (this.#running.delete(log)) this.#ended.add(log);
  }

  remove(log: Budgeted): void {
    this.#running.delete(log);
    this.#ended.delete(log);
  }

  grown(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > this.#maxBytes) this.#shed();
  }

  shrunk(bytes: number): void {
    this.#bytes -= bytes;
  }

  #shed(): void {
    for (const log of this.#ended) {
      if (this.#bytes <= this.#maxBytes) return;
      log.drop(log.keptBytes);
    }
    while (this.#bytes > this.#maxBytes) {
      let largest: Budgeted | undefined;
      for (const log of this.#running) if (log.keptBytes > (largest?.keptBytes ?? 0)) largest = log;
      // Half of it at a time, so that a guest at its bound does not search at every append.
      if (largest === undefined || largest.drop(Math.ceil(largest.keptBytes / 2)) === 0) return;
    }
  }
}
