import type { PodReading, SandboxReading } from "../ports/cluster.ts";
import type { Handle } from "../state/handle.ts";

/** Where the agent of a pod is dialled, by the operator's choice (L15); undefined: the cluster has not said it yet. */
export function agentHostOf(
  ws: Handle,
  sandbox: Pick<SandboxReading, "serviceHost">,
  pod: Pick<PodReading, "ip">,
): string | undefined {
  return ws.deps.policy.agentAddress === "service" ? sandbox.serviceHost : pod.ip;
}
