import type { CallRecord } from "../world/calls.ts";
import type { Moment } from "../world/history.ts";

/** What is wrong with a sequence: the promise that it broke, and how. */
export interface Violation {
  readonly promise: string;
  readonly what: string;
}

/** A call in words. */
export function said(call: CallRecord | undefined): string {
  if (call === undefined) return "no call";
  const { id, verb, caller, replica, epoch, answer } = call;
  const told = answer?.t === "error" ? answer.reason : (answer?.t ?? "unanswered");
  return `call ${id} (${verb} by caller ${caller} on replica ${replica}, epoch ${epoch ?? "none"}, ${told})`;
}

/** Each change of the object, with what stood before it. */
export function* sandboxChanges(
  moments: readonly Moment[],
): Iterable<{ readonly before: Moment; readonly after: Moment }> {
  for (const [index, after] of moments.entries()) {
    const before = moments[index - 1];
    if (before && before.sandbox !== after.sandbox) yield { before, after };
  }
}
