import { isObject, listIn, objectIn, stringIn } from "../../json.ts";
import type { KubeObject } from "../../resource-api.ts";
import { badRequest, bindingRefused, invalidBinding, preconditionFailed, staleResourceVersion } from "../refusals.ts";
import type { Target } from "./target.ts";
import { rfc3339 } from "./timestamp.ts";

/** The pod as a Binding leaves it: on its node and PodScheduled. Throws as the real server does for one that may not be bound. */
export function boundBy(target: Target, pod: KubeObject, body: unknown, now: Date): KubeObject {
  const sent = objectIn(body, "metadata");
  const name = stringIn(sent, "name") ?? "";
  if (name !== "" && name !== target.name) throw badRequest("name in URL does not match name in Binding object");
  const node = objectIn(body, "target");
  const nodeName = stringIn(node, "name") ?? "";
  const kind = stringIn(node, "kind") ?? "";
  if (kind !== "" && kind !== "Node") {
    throw invalidBinding(
      `target.kind: Unsupported value: ${JSON.stringify(kind)}: supported values: "Node", "<empty>"`,
    );
  }
  if (nodeName === "") throw invalidBinding("target.name: Required value");

  const { uid = "", resourceVersion } = pod.metadata;
  const wantedUid = stringIn(sent, "uid") ?? "";
  if (wantedUid !== "" && wantedUid !== uid) {
    const why = `Precondition failed: UID in precondition: ${wantedUid}, UID in object meta: ${uid}`;
    throw preconditionFailed(target.type, target.name, why);
  }
  const wantedVersion = stringIn(sent, "resourceVersion") ?? "";
  if (wantedVersion !== "" && wantedVersion !== resourceVersion) throw staleResourceVersion(target.type, target.name);
  if (pod.metadata.deletionTimestamp !== undefined) {
    throw bindingRefused(target.name, `pod ${target.name} is being deleted, cannot be assigned to a host`);
  }
  const boundTo = stringIn(pod.spec, "nodeName") ?? "";
  if (boundTo !== "") {
    throw bindingRefused(target.name, `pod ${target.name} is already assigned to node ${JSON.stringify(boundTo)}`);
  }
  return withNode(pod, nodeName, now);
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
