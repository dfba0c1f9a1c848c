import type { Clock } from "@holdfast/async";

/** Aborts when nothing was heard for a while, or when the outer signal does. One timer, however much is heard. */
export class SilenceBound {
  readonly #clock: Clock;
  readonly #controller = new AbortController();
  readonly #release: () => void;
  #maxMs: number;
  #heardMs: number;
  #cancel: () => void;
  wasSilent = false;

  constructor(clock: Clock, outer: AbortSignal, maxMs: number) {
    this.#clock = clock;
    this.#maxMs = maxMs;
    this.#heardMs = clock.monotonicMs();
    this.#cancel = clock.schedule(maxMs, () => this.#look());
    const onAbort = (): void => this.#controller.abort(outer.reason);
    outer.addEventListener("abort", onAbort, { once: true });
    this.#release = () => outer.removeEventListener("abort", onAbort);
    if (outer.aborted) onAbort();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  heard(): void {
    this.#heardMs = this.#clock.monotonicMs();
  }

  /** From now on, silence may last this long. */
  allow(maxMs: number): void {
    this.#maxMs = maxMs;
    this.#cancel();
    this.#cancel = this.#clock.schedule(maxMs, () => this.#look());
  }

  /** Lets go of what it is still connected to. */
  stop(): void {
    this.#cancel();
    this.#release();
    this.#controller.abort(new Error("done"));
  }

  #look(): void {
    const leftMs = this.#heardMs + this.#maxMs - this.#clock.monotonicMs();
    if (leftMs > 0) {
      this.#cancel = this.#clock.schedule(leftMs, () => this.#look());
      return;
    }
    this.wasSilent = true;
    this.#controller.abort(new Error(`nothing was heard for ${this.#maxMs} ms`));
  }
}
