import type { Pass } from "./children.ts";
import type { MultiplePodsError } from "./multiple-pods-error.ts";
import { events } from "./names.ts";

/** Writes the one event that the controller emits. */
export async function recordMultiplePods(pass: Pass, error: MultiplePodsError, now: Date): Promise<void> {
  const { sandbox, cluster } = pass;
  const { name, namespace = "", uid } = sandbox.metadata;
  const at = `${now.toISOString().slice(0, 19)}Z`;
  await cluster.api.create(events, namespace, {
    apiVersion: "v1",
    kind: "Event",
    metadata: { name: "", generateName: `${name}.`, namespace },
    involvedObject: { apiVersion: sandbox.apiVersion, kind: sandbox.kind, name, namespace, uid },
    type: "Warning",
    reason: "MultiplePods",
    action: "Reconciling",
    message: error.message,
    count: 1,
    firstTimestamp: at,
    lastTimestamp: at,
    reportingComponent: "sandbox-controller",
    source: { component: "sandbox-controller" },
  });
}
