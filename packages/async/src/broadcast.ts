/** Wakes everyone who listens to a key. It carries no news: whoever is woken reads again. */
export class Broadcast<Key> {
  readonly #listeners = new Map<Key, Set<() => void>>();

  /** Listens from now on. Subscribe before reading, else what happens between is missed. */
  subscribe(key: Key): Subscription {
    let woken = false;
    let wake: (() => void) | undefined;
    const listener = (): void => {
      woken = true;
      wake?.();
    };
    const set = this.#listeners.get(key) ?? new Set();
    this.#listeners.set(key, set.add(listener));
    return {
      next(signal) {
        if (signal.aborted) return Promise.reject(signal.reason);
        if (woken) {
          woken = false;
          return Promise.resolve();
        }
        return new Promise<void>((resolve, reject) => {
          const onAbort = (): void => {
            wake = undefined;
            reject(signal.reason);
          };
          signal.addEventListener("abort", onAbort, { once: true });
          wake = () => {
            wake = undefined;
            woken = false;
            signal.removeEventListener("abort", onAbort);
            resolve();
          };
        });
      },
      [Symbol.dispose]: () => {
        set.delete(listener);
        if (set.size === 0) this.#listeners.delete(key);
      },
    };
  }

  /** Wakes the listeners of the key. */
  wake(key: Key): void {
    for (const listener of [...(this.#listeners.get(key) ?? [])]) listener();
  }

  /** Wakes everyone, as after a lost watch. */
  wakeAll(): void {
    for (const key of [...this.#listeners.keys()]) this.wake(key);
  }

  /** How many listen. */
  get size(): number {
    let count = 0;
    for (const set of this.#listeners.values()) count += set.size;
    return count;
  }
}

/** One listener's place. One waiter at a time. */
export interface Subscription extends Disposable {
  /** Resolves at the next wake, or at once if one came since the last. Rejects with the signal's reason. */
  next(signal: AbortSignal): Promise<void>;
}
