import { podUidOf } from "@holdfast/contract";
import type { PodReading } from "@holdfast/workspace";
import { at, elements, integerOf, member, requireObject, requireText, textOf } from "./json.ts";
import { podProblem, terminationOf, terminationText } from "./pod-problem.ts";

const phases: readonly string[] = ["Pending", "Running", "Succeeded", "Failed"] satisfies PodReading["phase"][];

/** Reads a Pod. Throws ObjectUnreadable without a name, uid and version; anything else that cannot be read is "not yet" or unknown. */
export function readPodObject(value: unknown): PodReading {
  const pod = requireObject(value, "Pod");
  const metadata = requireObject(member(pod, "metadata"), "metadata");
  const status = member(pod, "status");
  const main = at(elements(at(pod, "spec", "containers"))[0], "name");
  const container = elements(at(status, "containerStatuses")).find((entry) => at(entry, "name") === main);
  const ended = at(container, "state", "terminated") ?? at(container, "lastState", "terminated");
  return {
    name: requireText(member(metadata, "name"), "metadata.name"),
    uid: podUidOf(requireText(member(metadata, "uid"), "metadata.uid")),
    resourceVersion: requireText(member(metadata, "resourceVersion"), "metadata.resourceVersion"),
    ip: textOf(at(status, "podIP")),
    phase: phaseOf(at(status, "phase")),
    ready: conditionOf(status, "Ready") === "True",
    deleting: member(metadata, "deletionTimestamp") !== undefined,
    gracePeriodSeconds:
      integerOf(member(metadata, "deletionGracePeriodSeconds")) ??
      integerOf(at(pod, "spec", "terminationGracePeriodSeconds")),
    node: textOf(at(pod, "spec", "nodeName")),
    image: textOf(at(elements(at(pod, "spec", "containers"))[0], "image")) ?? "",
    restartCount: Math.max(0, integerOf(at(container, "restartCount")) ?? 0),
    lastTermination: terminationText(ended),
    termination: terminationOf(ended),
    problem: podProblem(pod),
  };
}

/** True if the Sandbox with this uid owns it. The name says nothing: it may be of a Sandbox that is gone. */
export function isOwnedBy(value: unknown, ownerUid: string): boolean {
  return elements(at(value, "metadata", "ownerReferences")).some((owner) => at(owner, "uid") === ownerUid);
}

/** True if it mounts a claim of the Sandbox of this name. */
export function usesClaimOf(value: unknown, sandboxName: string): boolean {
  const volumes = elements(at(value, "spec", "volumes"));
  const claims = volumes.map((volume) => textOf(at(volume, "persistentVolumeClaim", "claimName")));
  return claims.some((claim) => claim?.endsWith(`-${sandboxName}`));
}

function phaseOf(value: unknown): PodReading["phase"] {
  return typeof value === "string" && phases.includes(value) ? (value as PodReading["phase"]) : "Unknown";
}

function conditionOf(status: unknown, type: string): unknown {
  return at(
    elements(at(status, "conditions")).find((condition) => at(condition, "type") === type),
    "status",
  );
}
