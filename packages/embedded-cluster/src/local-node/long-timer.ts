/** setTimeout fires at once beyond this. */
const longestTimerMs = 2 ** 31 - 1;

/** Calls back once after this time, of any length. Returns the way to stop it. */
export function callAfter(ms: number, run: () => void): () => void {
  let timer: NodeJS.Timeout;
  const arm = (leftMs: number): void => {
    const stepMs = Math.min(leftMs, longestTimerMs);
    timer = setTimeout(() => (leftMs > stepMs ? arm(leftMs - stepMs) : run()), stepMs);
  };
  arm(Math.max(0, ms));
  return () => clearTimeout(timer);
}
