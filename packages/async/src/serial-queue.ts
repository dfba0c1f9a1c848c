/** Runs tasks one at a time, in the order they were added. A failed task does not stop the next. */
export class SerialQueue {
  #tail: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  /** Tasks that run or wait. */
  get size(): number {
    return this.#waiting;
  }

  /** Runs `task` after all that were added before. A task whose signal aborts before its turn is not run. */
  run<T>(task: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    this.#waiting += 1;
    const turn = this.#tail.then(() => {
      signal?.throwIfAborted();
      return task();
    });
    this.#tail = turn.then(
      () => undefined,
      () => undefined,
    );
    return turn.finally(() => {
      this.#waiting -= 1;
    });
  }
}
