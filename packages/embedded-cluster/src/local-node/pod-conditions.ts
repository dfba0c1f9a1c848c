import { type JsonRecord, recordsOf, textOf } from "./json-shape.ts";
import type { PodPhase } from "./pod-phase.ts";

export interface Condition {
  readonly type: string;
  readonly status: "True" | "False";
  readonly reason?: string;
  readonly message?: string;
  readonly lastProbeTime: null;
  readonly lastTransitionTime: string;
}

export type BareCondition = Omit<Condition, "lastProbeTime" | "lastTransitionTime">;

/** What conditions are worked out from. */
export interface ConditionFacts {
  readonly phase: PodPhase;
  readonly unscheduled: string | undefined;
  /** The pod's place is ready: it has an address, and not all of it has ended. */
  readonly hasAddress: boolean;
  /** Init containers that have not succeeded yet. */
  readonly incomplete: readonly string[];
  readonly unready: readonly string[];
  readonly disruption: { readonly reason: string; readonly message: string } | undefined;
}

/** A pod's conditions as a scheduler and a kubelet set them. */
export function conditionsOf(facts: ConditionFacts): readonly BareCondition[] {
  const disruption: readonly BareCondition[] =
    facts.disruption === undefined ? [] : [{ type: "DisruptionTarget", status: "True", ...facts.disruption }];
  if (facts.unscheduled !== undefined) {
    const message = facts.unscheduled;
    return [...disruption, { type: "PodScheduled", status: "False", reason: "Unschedulable", message }];
  }
  const readiness = { ...statusOf(facts.unready.length === 0), ...whyNotReady(facts) };
  return [
    ...disruption,
    { type: "PodReadyToStartContainers", ...statusOf(facts.hasAddress) },
    { type: "Initialized", ...initialised(facts) },
    { type: "Ready", ...readiness },
    { type: "ContainersReady", ...readiness },
    { type: "PodScheduled", status: "True" },
  ];
}

function statusOf(holds: boolean): { readonly status: "True" | "False" } {
  return { status: holds ? "True" : "False" };
}

function initialised(facts: ConditionFacts): Omit<BareCondition, "type"> {
  if (facts.incomplete.length === 0)
    return { status: "True", ...(facts.phase === "Succeeded" ? { reason: "PodCompleted" } : {}) };
  const message = `containers with incomplete status: [${facts.incomplete.join(" ")}]`;
  return { status: "False", reason: "ContainersNotInitialized", message };
}

function whyNotReady(facts: ConditionFacts): { readonly reason?: string; readonly message?: string } {
  if (facts.unready.length === 0) return {};
  if (facts.phase === "Succeeded") return { reason: "PodCompleted" };
  if (facts.phase === "Failed") return { reason: "PodFailed" };
  return { reason: "ContainersNotReady", message: `containers with unready status: [${facts.unready.join(" ")}]` };
}

const ownTypes = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];

/** A condition that a node never sets by itself, or not without having said so (ConditionFacts.disruption). */
export function isForeign(condition: Condition): boolean {
  return !ownTypes.includes(condition.type);
}

/** The conditions of a stored status, by type. */
export function readConditions(status: JsonRecord): ReadonlyMap<string, Condition> {
  const conditions = new Map<string, Condition>();
  for (const entry of recordsOf(status.conditions)) {
    const [type, since] = [textOf(entry.type), textOf(entry.lastTransitionTime)];
    if (type === undefined || since === undefined) continue;
    const [reason, message] = [textOf(entry.reason), textOf(entry.message)];
    conditions.set(type, {
      type,
      status: entry.status === "True" ? "True" : "False",
      ...(reason === undefined ? {} : { reason }),
      ...(message === undefined ? {} : { message }),
      lastProbeTime: null,
      lastTransitionTime: since,
    });
  }
  return conditions;
}
