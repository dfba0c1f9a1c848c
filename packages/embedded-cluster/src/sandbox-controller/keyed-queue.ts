import { type Clock, systemClock } from "../clock.ts";

/** What a pass over a key asks for next: nothing, or another pass after a while. */
export type Next = { readonly againAfterMs: number } | undefined;

export interface KeyedQueueOptions {
  readonly work: (key: string) => Promise<Next>;
  readonly concurrency: number;
  readonly onError: (key: string, error: unknown) => void;
  readonly clock?: Clock;
}

const firstRetryMs = 5;
const longestRetryMs = 30_000;

/**
 * Works on keys: never twice at once on the same key, again when a key was added meanwhile, and with growing pauses
 * after failures. Idle keys cost nothing; only a key that waits for a time has a timer.
 */
export class KeyedQueue {
  readonly #options: KeyedQueueOptions;
  readonly #ready = new Set<string>();
  readonly #running = new Map<string, Promise<void>>();
  readonly #addedWhileRunning = new Set<string>();
  readonly #cancels = new Map<string, () => void>();
  readonly #failures = new Map<string, number>();
  #stopped = false;

  constructor(options: KeyedQueueOptions) {
    this.#options = options;
  }

  add(key: string): void {
    if (this.#stopped) return;
    if (this.#running.has(key)) {
      this.#addedWhileRunning.add(key);
      return;
    }
    this.#ready.add(key);
    this.#startSome();
  }

  /** Takes no more work and waits for what runs. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#ready.clear();
    for (const cancel of this.#cancels.values()) cancel();
    this.#cancels.clear();
    await Promise.all(this.#running.values());
  }

  #startSome(): void {
    for (const key of this.#ready) {
      if (this.#running.size >= this.#options.concurrency) return;
      this.#ready.delete(key);
      this.#clearTimer(key);
      this.#running.set(key, this.#run(key));
    }
  }

  async #run(key: string): Promise<void> {
    try {
      const next = await Promise.try(this.#options.work, key);
      this.#failures.delete(key);
      if (next !== undefined) this.#addAfter(key, next.againAfterMs);
    } catch (error) {
      this.#options.onError(key, error);
      const failures = this.#failures.get(key) ?? 0;
      this.#failures.set(key, failures + 1);
      this.#addAfter(key, Math.min(firstRetryMs * 2 ** Math.min(failures, 20), longestRetryMs));
    } finally {
      this.#running.delete(key);
      if (this.#addedWhileRunning.delete(key)) this.add(key);
      this.#startSome();
    }
  }

  #addAfter(key: string, ms: number): void {
    if (this.#stopped) return;
    this.#clearTimer(key);
    const { clock = systemClock } = this.#options;
    const cancel = clock.schedule(ms, () => {
      this.#cancels.delete(key);
      this.add(key);
    });
    this.#cancels.set(key, cancel);
  }

  #clearTimer(key: string): void {
    this.#cancels.get(key)?.();
    this.#cancels.delete(key);
  }
}
