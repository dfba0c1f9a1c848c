import type { KubeObject, NodeFaultActions, ResourceApi } from "@holdfast/embedded-cluster/testing";
import type { ForeignDeed } from "./steps.ts";
import { hasEnded, isDying, modeOf, storedEpochOf } from "./world/facts.ts";
import type { History } from "./world/history.ts";
import { objectNames } from "./world/object-names.ts";

/** Where somebody else does things. */
export interface ForeignHost {
  readonly somebody: ResourceApi;
  readonly node: NodeFaultActions;
  readonly history: History;
  readonly sandboxName: string;
  /** Disks that somebody took away. */
  lostClaims: number;
  now(): number;
}

const strayNameOf = ({ sandboxName }: ForeignHost): string => `${sandboxName}-stray`;

/** There is something to do it to: a wake is of what is suspended, all else of what stands. */
export function isDue({ history }: ForeignHost, deed: ForeignDeed): boolean {
  const { sandbox } = history.now();
  if (deed === "wake" || deed === "wake_and_kill_pod") return modeOf(sandbox) === "Suspended";
  return sandbox !== undefined;
}

/** What somebody else does, by the object contract or by force. One that finds nothing to do it to does nothing. */
export async function carryOutForeign(world: ForeignHost, deed: ForeignDeed): Promise<void> {
  const api = world.somebody;
  const { sandbox, pods } = world.history.now();
  const place = { resource: objectNames.sandboxes, namespace: "default", name: world.sandboxName };
  const pod = pods.find((one) => !hasEnded(one));
  const on = pod && { namespace: "default", name: pod.metadata.name };
  const ignored = (): undefined => undefined; // It lost a race with the cluster itself, as somebody's kubectl would.
  switch (deed) {
    case "delete":
      if (sandbox) await api.delete(place, { propagationPolicy: "Background" }).catch(ignored);
      return;
    case "recreate":
      if (!sandbox) return;
      await api.delete(place, { propagationPolicy: "Background" }).catch(ignored);
      await api.create(objectNames.sandboxes, "default", bare(sandbox)).catch(ignored);
      return;
    case "restore":
      if (!sandbox) return;
      await api.delete(place, { propagationPolicy: "Background" }).catch(ignored);
      await api.create(objectNames.sandboxes, "default", copyOf(sandbox)).catch(ignored);
      return;
    case "stray_pod":
      if (sandbox && pod)
        await api.create(objectNames.pods, "default", strayOf(pod, strayNameOf(world))).catch(ignored);
      return;
    case "suspend":
    case "wake":
      await changeMode(world, deed === "wake" ? "Running" : "Suspended").catch(ignored);
      return;
    case "fence":
      if (!sandbox) return;
      await api
        .patch(place, "application/merge-patch+json", {
          metadata: { annotations: { "sandbox.namzu.ai/holder-epoch": String(storedEpochOf(sandbox) + 2) } },
        })
        .catch(ignored);
      return;
    case "cycle":
      for (const mode of ["Suspended", "Running"] as const)
        await changeMode(world, mode, `mark-of-another-replica-${world.now()}-${mode}`).catch(ignored);
      return;
    case "kill_pod":
      if (on) await world.node.evict(on).catch(ignored);
      return;
    case "wake_and_kill_pod":
      await carryOutForeign(world, "wake");
      return await carryOutForeign(world, "kill_pod");
    case "drain_pod":
      if (on && pod && !isDying(pod)) {
        await api.delete({ resource: objectNames.pods, ...on }, { gracePeriodSeconds: 30 }).catch(ignored);
      }
      return;
    case "kill_container":
      if (on) await world.node.killContainer(on).catch(ignored);
      return;
    case "lose_claim":
      world.lostClaims += 1;
      await api
        .delete({ resource: objectNames.claims, namespace: "default", name: `workspace-${world.sandboxName}` })
        .catch(ignored);
      return;
  }
}

/** Who made it takes it away again. */
export async function removeStray(world: ForeignHost): Promise<void> {
  const place = { resource: objectNames.pods, namespace: "default", name: strayNameOf(world) };
  await world.somebody.delete(place, { gracePeriodSeconds: 0 }).catch(() => undefined);
}

/** As another tool of this contract does it: the mode and its stamp, and no mark of ours. With a mark: as a replica of ours that is not played. */
async function changeMode(world: ForeignHost, mode: "Running" | "Suspended", mark?: string): Promise<void> {
  const { sandbox } = world.history.now();
  // What was noted of it may be from before the first half of a cycle.
  if (!sandbox || isDying(sandbox) || (mark === undefined && modeOf(sandbox) === mode)) return;
  const stamp = new Date(world.now() + 1).toISOString();
  await world.somebody.patch(
    { resource: objectNames.sandboxes, namespace: "default", name: world.sandboxName },
    "application/merge-patch+json",
    {
      metadata: {
        annotations: {
          "sandbox.namzu.ai/operating-mode-changed-at": stamp,
          ...(mark !== undefined && { "holdfast.dev/written-by": mark }),
        },
      },
      spec: { operatingMode: mode },
    },
  );
}

/** As a tool restores it that keeps copies of objects: with all that was written on it, and another uid. */
function copyOf(sandbox: KubeObject): KubeObject {
  const { apiVersion, kind, metadata, spec } = sandbox;
  const { name, annotations, labels } = metadata;
  return {
    apiVersion,
    kind,
    metadata: { name, namespace: "default", ...(annotations && { annotations }), ...(labels && { labels }) },
    spec,
  };
}

/**
 * A pod of this owner that the controller did not make, on a node that nobody keeps. One that ran would be as good as any of its owner
 * (L15); this one is only there, and has to be waited for (L25).
 */
function strayOf(pod: KubeObject, name: string): KubeObject {
  const { apiVersion, kind, metadata, spec } = pod;
  const { ownerReferences = [], labels } = metadata;
  return {
    apiVersion,
    kind,
    metadata: { name, namespace: "default", ownerReferences, ...(labels && { labels }) },
    spec: { ...(spec as object), nodeName: "a-node-that-nobody-keeps" },
  };
}

/** The same workspace made anew by somebody: nothing of ours on it but the contract's. */
function bare(sandbox: KubeObject): KubeObject {
  return {
    apiVersion: sandbox.apiVersion,
    kind: sandbox.kind,
    metadata: { name: sandbox.metadata.name, namespace: "default" },
    spec: { ...(sandbox.spec as object), operatingMode: "Running" },
  };
}
