import { isApiStatus } from "../api-status-error.ts";
import type { Pass } from "./children.ts";
import { conditionsIn, findCondition, withCondition, withoutCondition } from "./condition-list.ts";
import { expiredCondition } from "./conditions.ts";
import { ownershipOf, pods, refOf, sandboxes } from "./names.ts";
import type { SandboxSpec } from "./sandbox-spec.ts";
import type { SandboxStatus } from "./sandbox-status.ts";
import { deleteService } from "./service-step.ts";

/** A time that lies ahead is looked at again when it comes, but never sooner than this. */
const shortestRecheckMs = 2_000;

/** How long until the shutdown time is looked at again; undefined when there is none, 0 when it has come. */
export function untilShutdownMs(spec: SandboxSpec, nowMs: number): number | undefined {
  if (spec.shutdownAtMs === undefined) return undefined;
  const left = spec.shutdownAtMs - nowMs;
  return left <= 0 ? 0 : Math.max(left, shortestRecheckMs);
}

export function isMarkedExpired(status: SandboxStatus): boolean {
  return findCondition(conditionsIn(status), "Ready")?.reason === "SandboxExpired";
}

/** The first pass after the time has come only says so. */
export function markedExpired(pass: Pass, status: SandboxStatus, now: string): SandboxStatus {
  const conditions = withoutCondition(conditionsIn(status), "PodScheduled");
  return { ...status, conditions: withCondition(conditions, expiredCondition(pass.sandbox), now) };
}

/** Later passes delete the owned pod and Service, never a claim; then the Sandbox itself, if its policy says so. */
export async function shutDown(
  pass: Pass,
  spec: SandboxSpec,
  status: SandboxStatus,
): Promise<SandboxStatus | "deleted"> {
  const { sandbox, cluster } = pass;
  const [pod] = cluster.pods.controlledBy(sandbox.metadata.uid ?? "");
  if (pod !== undefined && pod.metadata.deletionTimestamp === undefined)
    await ignoringGone(cluster.api.delete(refOf(pods, pod)));
  const service = cluster.services.get(sandbox.metadata.namespace ?? "", sandbox.metadata.name);
  if (service !== undefined && ownershipOf(service, sandbox) === "ours") await deleteService(pass, service);
  if (spec.shutdownPolicy === "Delete") {
    await ignoringGone(cluster.api.delete(refOf(sandboxes, sandbox)));
    return "deleted";
  }
  return { conditions: conditionsIn(status) };
}

async function ignoringGone(deletion: Promise<unknown>): Promise<void> {
  await deletion.catch((error: unknown) => {
    if (!isApiStatus(error, 404)) throw error;
  });
}
