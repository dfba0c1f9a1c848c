/** Time as an argument, so that being late can be tested. */
export interface Clock {
  /** Milliseconds since the epoch, for stamps that people read. May step. */
  now(): number;
  /** Milliseconds that never step back, for measuring and deadlines. */
  monotonicMs(): number;
  /** Calls `run` once after `afterMs` (any length, also beyond 2^31 ms). The returned function cancels it. */
  schedule(afterMs: number, run: () => void): () => void;
}

const longestTimerMs = 2 ** 31 - 1;

/** The machine's time. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  schedule(afterMs, run) {
    let timer: NodeJS.Timeout;
    const arm = (leftMs: number): void => {
      // setTimeout fires at once beyond 2^31 − 1 ms, so a longer wait is taken in steps.
      const stepMs = Math.min(leftMs, longestTimerMs);
      timer = setTimeout(() => (leftMs > stepMs ? arm(leftMs - stepMs) : run()), stepMs);
    };
    arm(Math.max(0, afterMs));
    return () => clearTimeout(timer);
  },
};
