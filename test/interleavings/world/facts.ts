import type { KubeObject } from "@holdfast/embedded-cluster/testing";
import type { Moment } from "./history.ts";

/** Reads of raw objects, written apart from the product's own so that both cannot be wrong in one way. */
const at = (value: unknown, ...path: readonly string[]): unknown =>
  path.reduce<unknown>(
    (here, key) => (typeof here === "object" && here !== null ? Reflect.get(here, key) : undefined),
    value,
  );

export const modeOf = (sandbox: KubeObject | undefined): "Running" | "Suspended" | undefined => {
  if (!sandbox) return undefined;
  return at(sandbox.spec, "operatingMode") === "Suspended" ? "Suspended" : "Running";
};

export const annotationOf = (sandbox: KubeObject | undefined, key: string): string | undefined =>
  sandbox?.metadata.annotations?.[key];

export const writtenByOf = (sandbox: KubeObject | undefined): string | undefined =>
  annotationOf(sandbox, "holdfast.dev/written-by");

/** 0 where none is stored, as the contract reads it. */
export const storedEpochOf = (sandbox: KubeObject | undefined): number =>
  Number(annotationOf(sandbox, "sandbox.namzu.ai/holder-epoch") ?? "0");

export const phaseOf = (pod: KubeObject): unknown => at(pod.status, "phase");
export const addressOf = (pod: KubeObject): unknown => at(pod.status, "podIP");
export const isDying = (object: KubeObject): boolean => object.metadata.deletionTimestamp !== undefined;
export const hasEnded = (pod: KubeObject): boolean => phaseOf(pod) === "Failed" || phaseOf(pod) === "Succeeded";

export const isReady = (pod: KubeObject): boolean => {
  const conditions = at(pod.status, "conditions");
  return (
    Array.isArray(conditions) && conditions.some((one) => at(one, "type") === "Ready" && at(one, "status") === "True")
  );
};

export const isBindable = (pod: KubeObject): boolean =>
  !isDying(pod) && !hasEnded(pod) && isReady(pod) && typeof addressOf(pod) === "string";

/** Asked to stop, and nothing of it lives. */
export const isStopped = ({ sandbox, pods }: Moment): boolean =>
  modeOf(sandbox) === "Suspended" && pods.every(hasEnded);

/** Could be bound. */
export const isUp = ({ sandbox, pods }: Moment): boolean =>
  modeOf(sandbox) === "Running" && sandbox !== undefined && !isDying(sandbox) && pods.some(isBindable);

export const containerRestartsOf = (pod: KubeObject): number => {
  const statuses = at(pod.status, "containerStatuses");
  const restarts = Array.isArray(statuses) ? at(statuses[0], "restartCount") : 0;
  return typeof restarts === "number" ? restarts : 0;
};
