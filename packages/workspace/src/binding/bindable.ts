import type { PodUid } from "@holdfast/contract";
import type { PodReading } from "../ports/cluster.ts";

/** A pod that may be bound: alive, ready by its own conditions, with an address, and not one that is being left (L15). */
export type BindablePod = PodReading & { readonly ip: string };

/** The pod to bind among those that the Sandbox owns. */
export function bindableOf(pods: readonly PodReading[], left: ReadonlySet<PodUid>): BindablePod | undefined {
  return pods.find((pod): pod is BindablePod => isCandidate(pod, left) && pod.ready && pod.ip !== undefined);
}

/** A pod that may become bindable. */
export function isCandidate(pod: PodReading, left: ReadonlySet<PodUid>): boolean {
  return !pod.deleting && !pod.isStray && !hasEnded(pod) && !left.has(pod.uid);
}

/** Ended by itself; a deletionTimestamp alone is not an end. */
export function hasEnded(pod: Pick<PodReading, "phase">): boolean {
  return pod.phase === "Succeeded" || pod.phase === "Failed";
}

/** A pod that ended without being asked to: the controller will not make another while the mode is Running (L42). */
export function endedByItself(pods: readonly PodReading[]): PodReading | undefined {
  const own = pods.filter((pod) => !pod.isStray);
  if (own.some((pod) => !hasEnded(pod) || pod.deleting)) return undefined;
  return own[0];
}

/** Why the pod of a Running workspace ended, and what to do. */
export function endedWords(pod: PodReading): string {
  const why = pod.lastTermination ?? pod.problem;
  const words = why === undefined ? pod.phase : `${pod.phase}: ${why}`;
  return `its pod ${pod.name} ended by itself (${words}) and the cluster makes no other while it stands. Open or resume the workspace, which replaces that pod; the disk is kept`;
}
