import type { ContainerView } from "./container-view.ts";
import type { RestartPolicy } from "./pod-plan.ts";

export type PodPhase = "Pending" | "Running" | "Succeeded" | "Failed";

/** A pod's phase as a kubelet works it out from its containers. */
export function phaseOf(
  policy: RestartPolicy,
  initContainers: readonly ContainerView[],
  containers: readonly ContainerView[],
): PodPhase {
  for (const { state } of initContainers) {
    if ("terminated" in state && state.terminated.exitCode === 0) continue;
    return "terminated" in state && policy === "Never" ? "Failed" : "Pending";
  }
  const neverStarted = containers.some((view) => "waiting" in view.state && view.lastTermination === undefined);
  if (neverStarted || containers.length === 0) return "Pending";
  if (policy === "Always" || containers.some((view) => "running" in view.state)) return "Running";
  if (containers.every((view) => exitCodeOf(view) === 0)) return "Succeeded";
  return policy === "Never" ? "Failed" : "Running";
}

function exitCodeOf({ state, lastTermination }: ContainerView): number | undefined {
  return "terminated" in state ? state.terminated.exitCode : lastTermination?.exitCode;
}
