import { arch, cpus, release, totalmem } from "node:os";
import { isApiStatus } from "../api-status-error.ts";
import type { KubeObject, ResourceApi } from "../resource-api.ts";
import type { Isolation } from "./isolation.ts";
import { recordOf, recordsOf, textOf } from "./json-shape.ts";
import { kubeTime, nodes } from "./resources.ts";

export const isolationAnnotation = "node.holdfast.dev/isolation";
export const relaxationsAnnotation = "node.holdfast.dev/relaxations";

interface NodeFacts {
  readonly name: string;
  readonly isolation: Isolation;
  readonly relaxations: readonly string[];
  readonly hostIp: string;
  readonly image: string;
}

const mergePatch = "application/merge-patch+json";

/** Finds or makes the Node object. Its uid tells one store from another. */
export async function ensureNodeObject(api: ResourceApi, name: string): Promise<string> {
  const ref = { resource: nodes, namespace: "", name };
  const bare: KubeObject = {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name, labels: { "kubernetes.io/hostname": name, "kubernetes.io/os": "linux" } },
    spec: {},
  };
  const node = await api.get(ref).catch((error: unknown) => {
    if (!isApiStatus(error, 404)) throw error;
    return api.create(nodes, "", bare);
  });
  if (node.metadata.uid === undefined) throw new Error(`the Node object ${name} has no uid`);
  return node.metadata.uid;
}

/** Says on the Node object what this node is and what it does not do. */
export async function reportNode(api: ResourceApi, facts: NodeFacts): Promise<void> {
  const ref = { resource: nodes, namespace: "", name: facts.name };
  const annotations = {
    [isolationAnnotation]: facts.isolation,
    [relaxationsAnnotation]: facts.relaxations.join("\n"),
  };
  await api.patch(ref, mergePatch, { metadata: { annotations }, spec: { unschedulable: null } });
  const isolated = facts.isolation !== "none";
  const resources = { cpu: `${cpus().length}`, memory: `${Math.floor(totalmem() / 1024)}Ki`, pods: "500" };
  await writeConditions(
    api,
    facts.name,
    [
      { type: "Ready", status: "True", reason: "NodeReady", message: "the node runs pods" },
      {
        type: "PodIsolation",
        status: isolated ? "True" : "False",
        reason: isolated ? "NamespacesInUse" : "NamespacesRefused",
        message: facts.relaxations.join(" "),
      },
    ],
    {
      capacity: resources,
      allocatable: resources,
      addresses: [
        { type: "InternalIP", address: facts.hostIp },
        { type: "Hostname", address: facts.name },
      ],
      daemonEndpoints: { kubeletEndpoint: { Port: 10_250 } },
      images: [{ names: [facts.image] }],
      nodeInfo: {
        architecture: arch() === "x64" ? "amd64" : arch(),
        operatingSystem: "linux",
        kernelVersion: release(),
        kubeletVersion: "v1.0.0-holdfast-embedded",
        containerRuntimeVersion: `holdfast-embedded://${facts.isolation}`,
      },
    },
  );
}

/** Says on the Node object that nothing runs here now. */
export function reportNodeStopped(api: ResourceApi, name: string): Promise<void> {
  const stopped = { type: "Ready", status: "False", reason: "NodeStopped", message: "the node was stopped" } as const;
  return writeConditions(api, name, [stopped], {});
}

interface NewCondition {
  readonly type: string;
  readonly status: "True" | "False";
  readonly reason: string;
  readonly message: string;
}

async function writeConditions(
  api: ResourceApi,
  name: string,
  wanted: readonly NewCondition[],
  more: object,
): Promise<void> {
  const ref = { resource: nodes, namespace: "", name };
  const now = kubeTime(new Date());
  const known = recordsOf(recordOf((await api.get(ref)).status).conditions);
  const others = known.filter((old) => !wanted.some((condition) => condition.type === old.type));
  const conditions = wanted.map((condition) => {
    const old = known.find((other) => other.type === condition.type && other.status === condition.status);
    return { ...condition, lastHeartbeatTime: now, lastTransitionTime: textOf(old?.lastTransitionTime) ?? now };
  });
  await api.patch(ref, mergePatch, { status: { ...more, conditions: [...others, ...conditions] } }, "status");
}
