import { isObject, listIn } from "../json.ts";

export interface Condition {
  readonly type: string;
  readonly status: "True" | "False" | "Unknown";
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration: number;
}

export interface StampedCondition extends Condition {
  readonly lastTransitionTime: string;
}

/** Sets a condition in its place, or at the end. Its transition time moves only when its status does. */
export function withCondition(
  conditions: readonly StampedCondition[],
  condition: Condition,
  now: string,
): StampedCondition[] {
  const before = conditions.find((item) => item.type === condition.type);
  const since = before?.status === condition.status ? before.lastTransitionTime : now;
  const stamped = { ...condition, lastTransitionTime: since };
  if (before === undefined) return [...conditions, stamped];
  return conditions.map((item) => (item === before ? stamped : item));
}

export function withoutCondition(conditions: readonly StampedCondition[], type: string): StampedCondition[] {
  return conditions.filter((item) => item.type !== type);
}

export function findCondition(conditions: readonly StampedCondition[], type: string): StampedCondition | undefined {
  return conditions.find((item) => item.type === type);
}

/** Reads the conditions of a status. */
export function conditionsIn(status: unknown): StampedCondition[] {
  return listIn(status, "conditions").filter(isStampedCondition);
}

function isStampedCondition(value: unknown): value is StampedCondition {
  return isObject(value) && typeof value.type === "string" && typeof value.status === "string";
}
