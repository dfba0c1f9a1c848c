import type { HolderEpoch } from "@holdfast/contract";

/** The call carries no epoch: it changes only what nobody has fenced (L21). */
interface Unfenced {
  readonly t: "none";
}

/** The caller's own fencing number (L20). It belongs to the call, never to the handle. */
interface UnderEpoch {
  readonly t: "epoch";
  readonly epoch: HolderEpoch;
}

/** How a call that starts a workspace stands to its fence. `take_over`: the stored number + 1, recomputed on every reading. */
export type StartFencing = Unfenced | UnderEpoch | { readonly t: "take_over" };

/**
 * How a call that stops a workspace stands to its fence. `ignore_fence`: it acts on whatever is stored, as read, and leaves it as it is;
 * `by` says who, for the log.
 */
export type StopFencing = Unfenced | UnderEpoch | { readonly t: "ignore_fence"; readonly by: string };

export type Fencing = StartFencing | StopFencing;

export const unfenced: Unfenced = { t: "none" };

/** The same where two calls speak for the same holder, so that they may share one flight (L3). Who ignores a fence is named each by itself. */
export function fencingKey(fencing: Fencing): string {
  if (fencing.t === "epoch") return `epoch ${fencing.epoch}`;
  return fencing.t === "ignore_fence" ? `ignore_fence ${fencing.by}` : fencing.t;
}
