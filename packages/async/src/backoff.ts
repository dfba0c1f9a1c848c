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

/** How a stream that is to stand for ever is opened again. */
export interface ReopenPolicy {
  /** One that stood this long is opened again at once, … */
  readonly steadyAfterMs: number;
  /** … within a random time, so that a thousand of them do not come together. */
  readonly resumeWithinMs: number;
  /** The least wait after one that did not. */
  readonly spacingMs: number;
  readonly backoffMaxMs: number;
  readonly retryAfterMaxMs: number;
}

/** The wait before a stream is opened again that stood for `heldMs`, after `faults` that did not stand. */
export function reopenWaitMs(
  policy: ReopenPolicy,
  ended: { readonly heldMs: number; readonly faults: number; readonly retryAfterMs: number | undefined },
): number {
  if (ended.heldMs >= policy.steadyAfterMs) return Math.random() * policy.resumeWithinMs;
  const waitMs = backoffMs({ firstMs: policy.spacingMs, maxMs: policy.backoffMaxMs }, ended.faults, Math.random());
  return Math.max(policy.spacingMs, waitMs, Math.min(ended.retryAfterMs ?? 0, policy.retryAfterMaxMs));
}
