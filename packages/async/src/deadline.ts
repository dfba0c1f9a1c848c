import type { Clock } from "./clock.ts";

/** A deadline ran out. Whoever waits turns it into the error that its caller can use. */
export class DeadlineExceeded extends Error {
  readonly budgetMs: number;
  constructor(budgetMs: number) {
    super(`the deadline of ${budgetMs} ms ran out`);
    this.name = "DeadlineExceeded";
    this.budgetMs = budgetMs;
  }
}

/**
 * Until when, and until whose cancellation, work may go on. `signal` aborts at either; its reason is a DeadlineExceeded or the
 * caller's own reason. Owns a timer: whoever makes one disposes of it (`using within = …`).
 */
export class Deadline implements Disposable {
  readonly signal: AbortSignal;
  readonly #clock: Clock;
  readonly #controller = new AbortController();
  readonly #beganAtMs: number;
  #endsAtMs: number;
  #cancelTimer: () => void;
  readonly #release: () => void;

  constructor(clock: Clock, budgetMs: number, caller?: AbortSignal) {
    this.#clock = clock;
    this.#beganAtMs = clock.monotonicMs();
    this.#endsAtMs = this.#beganAtMs + budgetMs;
    this.signal = this.#controller.signal;
    this.#cancelTimer = this.#arm(budgetMs);
    const onCallerAbort = (): void => this.#controller.abort(caller?.reason);
    if (caller?.aborted) onCallerAbort();
    else caller?.addEventListener("abort", onCallerAbort, { once: true });
    this.#release = () => caller?.removeEventListener("abort", onCallerAbort);
  }

  /** From its beginning to its end, by now. */
  get budgetMs(): number {
    return Math.round(this.#endsAtMs - this.#beganAtMs);
  }

  /** Lets it run for at least this long from now. No effect once it is over, nor on deadlines that were made within it before. */
  prolong(budgetMs: number): void {
    if (this.signal.aborted || this.remainingMs() >= budgetMs) return;
    this.#endsAtMs = this.#clock.monotonicMs() + budgetMs;
    this.#cancelTimer();
    this.#cancelTimer = this.#arm(budgetMs);
  }

  /** What is left, never negative. */
  remainingMs(): number {
    return Math.max(0, this.#endsAtMs - this.#clock.monotonicMs());
  }

  /** True once it ran out; a caller's cancellation does not count. */
  get expired(): boolean {
    return this.signal.reason instanceof DeadlineExceeded;
  }

  /** Throws the abort's reason once it is over. */
  throwIfOver(): void {
    this.signal.throwIfAborted();
  }

  /** A deadline within this one: the sooner of the two. */
  within(budgetMs: number): Deadline {
    return new Deadline(this.#clock, Math.min(budgetMs, this.remainingMs()), this.signal);
  }

  [Symbol.dispose](): void {
    this.#cancelTimer();
    this.#release();
  }

  #arm(budgetMs: number): () => void {
    return this.#clock.schedule(budgetMs, () => this.#controller.abort(new DeadlineExceeded(this.budgetMs)));
  }
}

/** Resolves with the promise, or rejects with the signal's reason, whichever is first. The work itself is not stopped. */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) {
    promise.catch(() => undefined); // The work's own failure has no listener left; the abort is what is reported.
    return Promise.reject(signal.reason);
  }
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}

/** Resolves after the time, or rejects with the signal's reason. */
export function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.reject(signal.reason);
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      cancel();
      reject(signal.reason);
    };
    const cancel = clock.schedule(ms, () => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    });
    signal.addEventListener("abort", onAbort, { once: true });
  });
}
