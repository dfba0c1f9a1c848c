import type { Clock } from "@holdfast/async";

interface Timer {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
}

/** Time of a world in this process: it passes timer by timer, and whatever a timer wakes comes to rest before the next. */
export class SteppedClock implements Clock {
  readonly #startedAt = Date.UTC(2026, 0, 1);
  readonly #timers = new Set<Timer>();
  readonly #rest: () => Promise<void>;
  #elapsedMs = 0;
  #steppedBackMs = 0;
  #order = 0;

  constructor(rest: () => Promise<void>) {
    this.#rest = rest;
  }

  now(): number {
    return this.#startedAt + this.#elapsedMs - this.#steppedBackMs;
  }

  monotonicMs(): number {
    return this.#elapsedMs;
  }

  schedule(afterMs: number, run: () => void): () => void {
    const timer = { atMs: this.#elapsedMs + Math.max(0, afterMs), order: this.#order++, run };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** The wall clock is set back; what is measured by durations is not. */
  stepBack(ms: number): void {
    this.#steppedBackMs += ms;
  }

  async advance(ms: number): Promise<void> {
    const untilMs = this.#elapsedMs + ms;
    await this.#rest();
    for (let due = this.#next(); due !== undefined && due.atMs <= untilMs; due = this.#next()) {
      this.#timers.delete(due);
      this.#elapsedMs = due.atMs;
      due.run();
      await this.#rest();
    }
    this.#elapsedMs = untilMs;
  }

  /** Lets time pass until it settles. Throws where `limitMs` were not enough. */
  async until<T>(promise: Promise<T>, limitMs: number): Promise<T> {
    let settled = false;
    const mark = (): void => {
      settled = true;
    };
    promise.then(mark, mark);
    const untilMs = this.#elapsedMs + limitMs;
    for (;;) {
      await this.#rest();
      if (settled) return await promise;
      const due = this.#next();
      if (due === undefined || due.atMs > untilMs)
        throw new Error(`nothing settled it within ${limitMs} ms of the world's time`);
      this.#timers.delete(due);
      this.#elapsedMs = due.atMs;
      due.run();
    }
  }

  #next(): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers) {
      if (!first || timer.atMs < first.atMs || (timer.atMs === first.atMs && timer.order < first.order)) first = timer;
    }
    return first;
  }
}
