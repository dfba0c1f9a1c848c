/** Runs keyed work soon, one piece at a time, letting requests in between. The same key twice is one piece. */
export class WorkQueue {
  readonly #pending = new Map<string, () => void>();
  readonly #onError: (key: string, error: unknown) => void;
  #scheduled = false;
  #stopped = false;

  constructor(onError: (key: string, error: unknown) => void) {
    this.#onError = onError;
  }

  add(key: string, work: () => void): void {
    if (this.#stopped) return;
    this.#pending.set(key, work);
    this.#schedule();
  }

  stop(): void {
    this.#stopped = true;
    this.#pending.clear();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => this.#runSome());
  }

  #runSome(): void {
    this.#scheduled = false;
    let budget = 20;
    for (const [key, work] of this.#pending) {
      if (budget-- === 0) break;
      this.#pending.delete(key);
      try {
        work();
      } catch (error) {
        this.#onError(key, error);
      }
    }
    if (this.#pending.size > 0) this.#schedule();
  }
}
