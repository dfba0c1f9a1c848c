import type { Clock } from "@holdfast/async";

/** A clock that the test moves on. What is due runs at once, in its order. */
export class HandClock implements Clock {
  #ms = 0;
  readonly #due = new Set<{ readonly atMs: number; readonly run: () => void }>();
  now = (): number => this.#ms;
  monotonicMs = (): number => this.#ms;

  /** Timers that are still to come. */
  get pending(): number {
    return this.#due.size;
  }

  schedule(afterMs: number, run: () => void): () => void {
    const entry = { atMs: this.#ms + afterMs, run };
    this.#due.add(entry);
    return () => this.#due.delete(entry);
  }

  pass(ms: number): void {
    this.#ms += ms;
    for (const entry of [...this.#due].sort((a, b) => a.atMs - b.atMs)) {
      if (entry.atMs <= this.#ms && this.#due.delete(entry)) entry.run();
    }
  }
}
