import type { Clock } from "@holdfast/async";

interface Timer {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
}

/** Time that passes only when a test says so. */
export class ManualClock implements Clock {
  #startedAt: number;
  #elapsedMs = 0;
  #order = 0;
  readonly #timers = new Set<Timer>();

  constructor(startedAt = Date.UTC(2026, 0, 1)) {
    this.#startedAt = startedAt;
  }

  now(): number {
    return this.#startedAt + this.#elapsedMs;
  }

  monotonicMs(): number {
    return this.#elapsedMs;
  }

  schedule(afterMs: number, run: () => void): () => void {
    const timer = { atMs: this.#elapsedMs + Math.max(0, afterMs), order: this.#order++, run };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** The wall clock is set: what is measured goes on as it was. */
  step(ms: number): void {
    this.#startedAt += ms;
  }

  /** Timers that are still to come. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Lets this much time pass, timer by timer, letting what they wake run before the next. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#elapsedMs + ms;
    await settleTasks();
    for (let due = this.#next(); due && due.atMs <= untilMs; due = this.#next()) await this.#fire(due);
    this.#elapsedMs = untilMs;
  }

  /** Lets time pass until the promise settles, at most `limitMs`. For what must end by itself. */
  async runUntilSettled<T>(promise: Promise<T>, limitMs = 3_600_000): Promise<T> {
    const untilMs = this.#elapsedMs + limitMs;
    let settled = false;
    const mark = (): void => {
      settled = true;
    };
    promise.then(mark, mark);
    for (;;) {
      await settleTasks();
      if (settled) return await promise;
      const due = this.#next();
      if (!due || due.atMs > untilMs) throw new Error(`nothing settled it within ${limitMs} ms of manual time`);
      await this.#fire(due);
    }
  }

  #next(): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers) {
      const sooner = !first || timer.atMs < first.atMs || (timer.atMs === first.atMs && timer.order < first.order);
      if (sooner) first = timer;
    }
    return first;
  }

  async #fire(timer: Timer): Promise<void> {
    this.#timers.delete(timer);
    this.#elapsedMs = timer.atMs;
    timer.run();
    await settleTasks();
  }
}

/** Lets everything that is ready to run, run. No time passes on a manual clock. */
export async function settleTasks(): Promise<void> {
  // One turn of the event loop drains the microtasks; a second those of what the first let begin.
  await new Promise((resolve) => setImmediate(resolve));
  await new Promise((resolve) => setImmediate(resolve));
}
