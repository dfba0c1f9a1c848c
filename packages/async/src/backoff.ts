/** How long to wait before each try: doubling from `firstMs` to `maxMs`, with full jitter on the upper half. */
export interface BackoffPolicy {
  readonly firstMs: number;
  readonly maxMs: number;
}

/** The wait before try number `attempt` (0 is the first retry). `random` is in [0, 1). */
export function backoffMs(policy: BackoffPolicy, attempt: number, random: number): number {
  const ceiling = Math.min(policy.maxMs, policy.firstMs * 2 ** Math.min(attempt, 30));
  return ceiling / 2 + (ceiling / 2) * random;
}
