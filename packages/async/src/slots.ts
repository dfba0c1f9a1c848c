/** Runs at most so many tasks at once; the others wait in the order in which they came. */
export class Slots {
  readonly #waiting: (() => void)[] = [];
  #free: number;

  constructor(count: number) {
    this.#free = count;
  }

  async run<Result>(task: () => Promise<Result>): Promise<Result> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await task();
    } finally {
      const next = this.#waiting.shift();
      // A place is handed on, so that nobody who comes between takes it.
      if (next) next();
      else this.#free += 1;
    }
  }
}
