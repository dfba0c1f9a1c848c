import { isObject, listIn, objectIn, stringIn } from "../../json.ts";
import type { KubeObject } from "../../resource-api.ts";
import { badRequest, bindingPrecondition, bindingRefused, invalidBinding } from "../refusals.ts";
import type { Target } from "./target.ts";
import { rfc3339 } from "./timestamp.ts";

/** The pod as a Binding leaves it: on its node and PodScheduled. Throws as the real server does for one that may not be bound. */
export function boundBy({ name }: Target, pod: KubeObject, body: unknown, now: Date): KubeObject {
  if (stringIn(objectIn(body, "metadata"), "name") !== name) {
    throw badRequest("name in URL does not match name in Binding object");
  }
  const nodeName = nodeNameOf(objectIn(body, "target"));
  assertPreconditions(pod, objectIn(body, "metadata"));
  const refuse = (why: string) => bindingRefused(name, `pod ${name} ${why}`);
  if (pod.metadata.deletionTimestamp !== undefined) throw refuse("is being deleted, cannot be assigned to a host");
  const boundTo = stringIn(pod.spec, "nodeName") ?? "";
  if (boundTo !== "") throw refuse(`is already assigned to node ${JSON.stringify(boundTo)}`);
  if (listIn(pod.spec, "schedulingGates").length > 0) throw refuse("has non-empty .spec.schedulingGates");
  return withNode(withMetadataOf(pod, objectIn(body, "metadata")), nodeName, now);
}

function nodeNameOf(target: unknown): string {
  const kind = stringIn(target, "kind") ?? "";
  const name = stringIn(target, "name") ?? "";
  const wrong: string[] = [];
  if (kind !== "" && kind !== "Node") {
    const supported = 'supported values: "Node", "<empty>"';
    wrong.push(`target.kind: Unsupported value: ${JSON.stringify(kind)}: ${supported}`);
  }
  if (name === "") wrong.push("target.name: Required value");
  if (wrong.length > 0) throw invalidBinding(wrong.length === 1 ? (wrong[0] ?? "") : `[${wrong.join(", ")}]`);
  return name;
}

function assertPreconditions(pod: KubeObject, sent: unknown): void {
  const { name, namespace = "", uid = "", resourceVersion = "" } = pod.metadata;
  for (const [member, word, present] of [
    ["uid", "UID", uid],
    ["resourceVersion", "ResourceVersion", resourceVersion],
  ] as const) {
    const wanted = stringIn(sent, member) ?? "";
    if (wanted !== "" && wanted !== present) throw bindingPrecondition(namespace, name, word, wanted, present);
  }
}

/** Labels and annotations of a Binding are laid over the pod's. */
function withMetadataOf(pod: KubeObject, sent: unknown): KubeObject {
  const metadata = { ...pod.metadata };
  for (const member of ["labels", "annotations"] as const) {
    const added = Object.entries(objectIn(sent, member) ?? {}).map(([key, value]) => [key, String(value)]);
    if (added.length > 0) metadata[member] = { ...metadata[member], ...Object.fromEntries(added) };
  }
  return { ...pod, metadata };
}

function withNode(pod: KubeObject, nodeName: string, now: Date): KubeObject {
  const others = listIn(pod.status, "conditions").filter((entry) => stringIn(entry, "type") !== "PodScheduled");
  const scheduled = {
    type: "PodScheduled",
    status: "True",
    lastProbeTime: null,
    lastTransitionTime: rfc3339(now),
  };
  return {
    ...pod,
    spec: { ...(isObject(pod.spec) ? pod.spec : {}), nodeName },
    status: { ...(isObject(pod.status) ? pod.status : {}), conditions: [...others, scheduled] },
  };
}
