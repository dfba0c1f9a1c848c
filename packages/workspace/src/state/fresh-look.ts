/**
 * Looks shared by whoever needs one that begins after they ask: a look that runs already may be older than what they learned. At most one
 * runs and one waits, however many ask.
 */
export class FreshLook<Result> {
  #running: Promise<Result> | undefined;
  #next: Promise<Result> | undefined;

  run(look: () => Promise<Result>): Promise<Result> {
    if (this.#next) return this.#next;
    if (!this.#running) return this.#begin(look);
    const over = this.#running.then(
      () => undefined,
      () => undefined,
    );
    this.#next = over.then(() => {
      this.#next = undefined;
      return this.#begin(look);
    });
    return this.#next;
  }

  #begin(look: () => Promise<Result>): Promise<Result> {
    const running = look();
    this.#running = running;
    const over = (): void => {
      if (this.#running === running) this.#running = undefined;
    };
    running.then(over, over);
    return running;
  }
}
