/** Joins callers of the same key to one running piece of work. */
export class SingleFlight<Key, Result> {
  readonly #flights = new Map<Key, Promise<Result>>();

  /** The running work of the key, or a new one. */
  run(key: Key, start: () => Promise<Result>): Promise<Result> {
    const running = this.#flights.get(key);
    if (running) return running;
    const flight = start().finally(() => {
      if (this.#flights.get(key) === flight) this.#flights.delete(key);
    });
    this.#flights.set(key, flight);
    return flight;
  }
}
