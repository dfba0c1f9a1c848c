/** Time as an argument. The shape of the other rooms' clock, so that one manual clock moves all of them. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls `run` once after `afterMs`. The returned function cancels it. */
  schedule(afterMs: number, run: () => void): () => void;
}

/** setTimeout fires at once beyond 2^31 − 1 ms; a longer wait is taken in steps of this. */
const longestTimerMs = 86_400_000;

/** The machine's time. */
export const systemClock: Clock = {
  now: () => Date.now(),
  schedule(afterMs, run) {
    let timer: NodeJS.Timeout;
    const arm = (leftMs: number): void => {
      const stepMs = Math.min(leftMs, longestTimerMs);
      timer = setTimeout(() => (leftMs > stepMs ? arm(leftMs - stepMs) : run()), stepMs);
    };
    arm(Math.max(0, afterMs));
    return () => clearTimeout(timer);
  },
};

/** Waits, or less when the signal aborts. Never rejects. */
export function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const end = (): void => {
      cancel();
      signal.removeEventListener("abort", end);
      resolve();
    };
    const cancel = clock.schedule(ms, end);
    signal.addEventListener("abort", end, { once: true });
  });
}

/** Resolves when the signal aborts. */
export function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
