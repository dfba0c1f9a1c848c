/**
 * Lets go of a call's work when a signal aborts: whoever awaits it gets the error, the work itself is neither awaited nor aborted.
 * One listener for the life of the call, however many steps it has.
 */
export class LetGo {
  readonly #signal: AbortSignal;
  readonly #errorOf: () => Error;
  readonly #onAbort = (): void => this.#reject?.(this.#errorOf());
  #reject: ((error: Error) => void) | undefined;

  constructor(signal: AbortSignal, errorOf: () => Error) {
    this.#signal = signal;
    this.#errorOf = errorOf;
    signal.addEventListener("abort", this.#onAbort, { once: true });
  }

  /** The step's own ending, or the error of letting go, whichever is first. One step at a time. */
  orLetGo<Value>(step: Promise<Value>): Promise<Value> {
    return new Promise((resolve, reject) => {
      this.#reject = reject;
      step.then(resolve, reject);
      if (this.#signal.aborted) this.#onAbort();
    });
  }

  dispose(): void {
    this.#signal.removeEventListener("abort", this.#onAbort);
    this.#reject = undefined;
  }
}
