/** Holds work at a point until the test lets it go on. */
export class Gate {
  /** Resolves when the work has come to the point. */
  readonly reached: Promise<void>;
  #arrive: () => void = () => undefined;
  #open: () => void = () => undefined;
  readonly #opened: Promise<void>;

  constructor() {
    this.reached = new Promise((resolve) => {
      this.#arrive = resolve;
    });
    this.#opened = new Promise((resolve) => {
      this.#open = resolve;
    });
  }

  /** Lets the work go on. */
  release(): void {
    this.#open();
  }

  /** For the work: says that it is here, and waits. Rejects with the signal's reason. */
  pass(signal: AbortSignal): Promise<void> {
    this.#arrive();
    if (signal.aborted) return Promise.reject(signal.reason);
    return new Promise((resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      this.#opened.then(resolve, reject);
    });
  }
}
