import { isDeepStrictEqual } from "node:util";
import { isApiStatus } from "../api-status-error.ts";
import { isObject, type JsonObject, listIn, stringIn } from "../json.ts";
import type { KubeObject } from "../resource-api.ts";
import type { Pass } from "./children.ts";
import {
  conditionsIn,
  findCondition,
  type StampedCondition,
  withCondition,
  withoutCondition,
} from "./condition-list.ts";
import { computeConditions, type Observed, presentWhileTrue } from "./conditions.ts";
import { nameHashLabel, ownershipOf, refOf, sandboxes } from "./names.ts";

/** A Sandbox's status as JSON; members that do not apply are absent. */
export type SandboxStatus = JsonObject;

export function statusOf(sandbox: KubeObject): SandboxStatus {
  return isObject(sandbox.status) ? sandbox.status : {};
}

/** The status after an ordinary pass. */
export function statusAfter(before: SandboxStatus, observed: Observed, hash: string, now: string): SandboxStatus {
  const { sandbox, pod, service } = observed;
  const status: SandboxStatus = { ...before };
  const owned = pod !== undefined && ownershipOf(pod, sandbox) === "ours" ? pod : undefined;
  // Kept while the pod is dying; without a pod, or one that could not be read, they go.
  assign(status, "podIPs", podIpsOf(owned));
  assign(status, "nodeName", stringIn(owned?.spec, "nodeName"));
  if (pod !== undefined) status.selector = `${nameHashLabel}=${hash}`;
  if (service !== undefined) {
    status.service = service.metadata.name;
    status.serviceFQDN = `${service.metadata.name}.${service.metadata.namespace ?? ""}.svc.cluster.local`;
  } else if (observed.isServiceKnown) {
    delete status.service;
    delete status.serviceFQDN;
  }
  status.conditions = conditionsAfter(conditionsIn(before), observed, now);
  return status;
}

function conditionsAfter(before: StampedCondition[], observed: Observed, now: string): StampedCondition[] {
  const computed = computeConditions(observed);
  const kept = presentWhileTrue
    .filter((type) => computed.every((condition) => condition.type !== type))
    .reduce(withoutCondition, before);
  return computed.reduce((all, condition) => withCondition(all, condition, now), kept);
}

/** Writes a status by merge patch, only what changed, and only if something did. */
export async function writeStatus(pass: Pass, before: SandboxStatus, after: SandboxStatus): Promise<void> {
  const patch = mergePatchBetween(before, after);
  const changed = Object.keys(patch);
  if (changed.length === 0) return;
  const isReady = findCondition(conditionsIn(after), "Ready")?.status === "True";
  // A node alone is not worth a write while there is more to come.
  if (!isReady && changed.length === 1 && changed[0] === "nodeName") return;
  const ref = refOf(sandboxes, pass.sandbox);
  await pass.cluster.api
    .patch(ref, "application/merge-patch+json", { status: patch }, "status")
    .catch((error: unknown) => {
      if (!isApiStatus(error, 404)) throw error; // it was deleted meanwhile
    });
}

function mergePatchBetween(before: SandboxStatus, after: SandboxStatus): JsonObject {
  const patch: JsonObject = {};
  for (const member of new Set([...Object.keys(before), ...Object.keys(after)])) {
    if (!isDeepStrictEqual(before[member], after[member])) patch[member] = after[member] ?? null;
  }
  return patch;
}

function podIpsOf(pod: KubeObject | undefined): string[] | undefined {
  const ips = listIn(pod?.status, "podIPs").flatMap((item) => stringIn(item, "ip") ?? []);
  return ips.length === 0 ? undefined : ips;
}

function assign(status: SandboxStatus, member: string, value: unknown): void {
  if (value === undefined || value === "") delete status[member];
  else status[member] = value;
}
