const firstRetryMs = 50;
const longestRetryMs = 30_000;
const perTurn = 20;

/**
 * Runs keyed work soon, one piece at a time, letting requests in between. The same key twice is one piece. What fails
 * is run again after a pause that grows, if `onError` says so.
 */
export class WorkQueue {
  readonly #pending = new Map<string, () => void>();
  readonly #failures = new Map<string, number>();
  readonly #retries = new Map<string, NodeJS.Timeout>();
  readonly #onError: (key: string, error: unknown) => "done" | "again";
  #scheduled = false;
  #stopped = false;

  constructor(onError: (key: string, error: unknown) => "done" | "again") {
    this.#onError = onError;
  }

  /** Nothing waits to be run, now or after a pause. */
  get isIdle(): boolean {
    return this.#pending.size === 0 && this.#retries.size === 0;
  }

  add(key: string, work: () => void): void {
    if (this.#stopped) return;
    clearTimeout(this.#retries.get(key));
    this.#retries.delete(key);
    this.#pending.set(key, work);
    this.#schedule();
  }

  stop(): void {
    this.#stopped = true;
    this.#pending.clear();
    for (const timer of this.#retries.values()) clearTimeout(timer);
    this.#retries.clear();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => this.#runSome());
  }

  #runSome(): void {
    this.#scheduled = false;
    // What is added meanwhile, a piece that goes on among it, waits for the next turn.
    for (const key of firstOf(this.#pending.keys(), perTurn)) {
      const work = this.#pending.get(key);
      this.#pending.delete(key);
      if (work !== undefined) this.#run(key, work);
    }
    if (this.#pending.size > 0) this.#schedule();
  }

  #run(key: string, work: () => void): void {
    try {
      work();
      this.#failures.delete(key);
    } catch (error) {
      if (this.#onError(key, error) === "done") {
        this.#failures.delete(key);
        return;
      }
      const failures = this.#failures.get(key) ?? 0;
      this.#failures.set(key, failures + 1);
      const pauseMs = Math.min(firstRetryMs * 2 ** Math.min(failures, 20), longestRetryMs);
      // Unless the work has added itself again meanwhile.
      if (!this.#pending.has(key))
        this.#retries.set(
          key,
          setTimeout(() => this.add(key, work), pauseMs),
        );
    }
  }
}

function firstOf(keys: Iterable<string>, count: number): readonly string[] {
  const found: string[] = [];
  for (const key of keys) if (found.push(key) === count) break;
  return found;
}
