const resetAfterMs = 10 * 60_000;

/** How long a thing that failed waits to be tried again: it doubles from the first to the longest. */
export interface BackoffSpan {
  readonly firstMs: number;
  readonly longestMs: number;
}

/** As with a kubelet. */
export const kubeletBackoff: BackoffSpan = { firstMs: 10_000, longestMs: 300_000 };

/** How long a container that ended waits to be started again: at once the first time, then 10, 20, 40 … 300 seconds. */
export class RestartBackoff {
  readonly #span: BackoffSpan;
  #restarts = 0;

  constructor(span: BackoffSpan = kubeletBackoff) {
    this.#span = span;
  }

  /** The wait after a run of that length. A long run starts the series anew. */
  nextMs(ranMs: number): number {
    if (ranMs >= resetAfterMs) this.#restarts = 0;
    const delay = this.#restarts === 0 ? 0 : nthDelayMs(this.#span, this.#restarts - 1);
    this.#restarts++;
    return delay;
  }
}

/** The wait before try number `n`, from 0. */
export function nthDelayMs(span: BackoffSpan, n: number): number {
  return Math.min(span.longestMs, span.firstMs * 2 ** n);
}
