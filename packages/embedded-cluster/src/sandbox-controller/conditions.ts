import { isObject, listIn, stringIn } from "../json.ts";
import type { KubeObject } from "../resource-api.ts";
import type { Condition } from "./condition-list.ts";
import { MultiplePodsError } from "./multiple-pods-error.ts";
import { ownershipOf } from "./names.ts";
import type { SandboxSpec } from "./sandbox-spec.ts";

/** What a pass has learned of a Sandbox's children. */
export interface Observed {
  readonly sandbox: KubeObject;
  readonly spec: SandboxSpec;
  /** The pod, also a foreign or a dying one; undefined too when it could not be read (see podError). */
  readonly pod: KubeObject | undefined;
  readonly podError: unknown;
  readonly service: KubeObject | undefined;
  /** False when the Service was not looked at or could not be: what the status says of it then stays. */
  readonly isServiceKnown: boolean;
  /** Everything that went wrong in the pass, the pod's error included. */
  readonly errors: readonly unknown[];
}

/** The conditions that hold, in the order in which the real controller sets them. */
export function computeConditions(observed: Observed): Condition[] {
  const computed = [suspended(observed), finished(observed), podScheduled(observed), ready(observed)];
  return computed.filter((condition) => condition !== undefined);
}

/** Conditions that are removed when they do not hold; Suspended and Ready stay and turn False. */
export const presentWhileTrue: readonly string[] = ["Finished", "PodScheduled"];

export function expiredCondition(sandbox: KubeObject): Condition {
  return condition(sandbox, "Ready", "False", "SandboxExpired", "Sandbox has expired");
}

function suspended({ sandbox, spec, pod, podError }: Observed): Condition {
  const say = (status: Condition["status"], reason: string, message: string) =>
    condition(sandbox, "Suspended", status, reason, message);
  if (spec.mode === "Running") return say("False", "NotSuspended", "Sandbox is not suspended");
  if (pod === undefined && podError !== undefined) {
    return say("Unknown", "PodStateUnknown", "Pod state is unknown. Sandbox suspension cannot be confirmed");
  }
  if (pod === undefined) return say("True", "PodTerminated", "Pod has been terminated. Sandbox is suspended");
  if (ownershipOf(pod, sandbox) !== "ours") {
    return say("False", "PodNotOwned", "Refused to delete pod because it is not owned by this sandbox");
  }
  return say("False", "PodTerminating", "Pod is terminating. Sandbox is suspending");
}

function finished({ sandbox, pod }: Observed): Condition | undefined {
  if (pod === undefined || ownershipOf(pod, sandbox) !== "ours") return undefined;
  const ended = endOf(pod);
  return ended === undefined ? undefined : condition(sandbox, "Finished", "True", ended.reason, ended.message);
}

function endOf(pod: KubeObject): { reason: string; message: string } | undefined {
  const phase = stringIn(pod.status, "phase");
  if (phase === "Succeeded") return { reason: "PodSucceeded", message: "Pod completed successfully" };
  if (phase === "Failed") return { reason: "PodFailed", message: "Pod failed" };
  return undefined;
}

/** Mirrors the pod's own condition while there is an owned pod. */
function podScheduled({ sandbox, pod, podError }: Observed): Condition | undefined {
  const say = (status: Condition["status"], reason: string, message: string) =>
    condition(sandbox, "PodScheduled", status, reason, message);
  if (pod === undefined && podError !== undefined) {
    return say("Unknown", "PodSchedulingUnknown", "Pod state is unknown. Pod scheduling cannot be determined");
  }
  if (pod === undefined || ownershipOf(pod, sandbox) !== "ours") return undefined;
  const own = podCondition(pod, "PodScheduled");
  if (own === undefined) {
    return say("Unknown", "PodSchedulingUnknown", "Pod has not reported a PodScheduled condition yet");
  }
  const fallback = own.status === "True" ? "PodScheduled" : "PodSchedulingUnknown";
  return say(own.status, own.reason === "" ? fallback : own.reason, own.message);
}

function ready(observed: Observed): Condition {
  const { sandbox, spec, pod, errors } = observed;
  const not = (reason: string, message: string) => condition(sandbox, "Ready", "False", reason, message);
  const conflict = errors.find((error) => error instanceof MultiplePodsError);
  if (conflict !== undefined) return not("MultiplePods", conflict.message);
  if (errors.length > 0) return not("ReconcilerError", `Error seen: ${errors.map(messageOf).join("\n")}`);
  if (spec.mode === "Suspended") {
    return not("SandboxSuspended", pod === undefined ? "Sandbox is suspended" : "Sandbox is suspending");
  }
  const ended = pod === undefined ? undefined : endOf(pod);
  if (ended !== undefined) return not(ended.reason, ended.message);
  return dependencies(observed);
}

// Looks at neither deletionTimestamp nor the pod's uid: a dying pod that is still Ready keeps the Sandbox Ready, as in
// the real controller. Callers have to survive it, so it is kept.
function dependencies({ sandbox, spec, pod, service }: Observed): Condition {
  const standing = pod === undefined ? { isReady: false, message: "Pod does not exist" } : podStanding(pod);
  const needsService = spec.service ?? service !== undefined;
  const hasService = service !== undefined;
  const suffix = !needsService ? "" : hasService ? "; Service Exists" : "; Service does not exist";
  const isReady = standing.isReady && (!needsService || hasService);
  const reason = isReady ? "DependenciesReady" : "DependenciesNotReady";
  return condition(sandbox, "Ready", isReady ? "True" : "False", reason, standing.message + suffix);
}

function podStanding(pod: KubeObject): { isReady: boolean; message: string } {
  const phase = stringIn(pod.status, "phase") ?? "";
  if (phase !== "Running") return { isReady: false, message: `Pod exists with phase: ${phase}` };
  if (podCondition(pod, "Ready")?.status !== "True") return { isReady: false, message: "Pod is Running but not Ready" };
  if (listIn(pod.status, "podIPs").length === 0)
    return { isReady: false, message: "Pod is Ready but has no podIPs yet" };
  return { isReady: true, message: "Pod is Ready" };
}

function podCondition(
  pod: KubeObject,
  type: string,
): { status: Condition["status"]; reason: string; message: string } | undefined {
  const found = listIn(pod.status, "conditions").find((item) => isObject(item) && item.type === type);
  if (found === undefined) return undefined;
  const status = stringIn(found, "status");
  return {
    status: status === "True" || status === "False" ? status : "Unknown",
    reason: stringIn(found, "reason") ?? "",
    message: stringIn(found, "message") ?? "",
  };
}

function condition(
  sandbox: KubeObject,
  type: string,
  status: Condition["status"],
  reason: string,
  message: string,
): Condition {
  return { type, status, reason, message, observedGeneration: sandbox.metadata.generation ?? 0 };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
