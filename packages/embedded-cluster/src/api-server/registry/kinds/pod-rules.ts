import { isDeepStrictEqual } from "node:util";
import type { StatusCause } from "../../../api-status-error.ts";
import { isObject, type JsonObject, listIn, stringIn } from "../../../json.ts";
import type { KubeObject } from "../../../resource-api.ts";
import { required } from "../metadata-rules.ts";
import type { KindRules } from "./kind-rules.ts";

const specDefaults: JsonObject = {
  restartPolicy: "Always",
  terminationGracePeriodSeconds: 30,
  dnsPolicy: "ClusterFirst",
  schedulerName: "default-scheduler",
  enableServiceLinks: true,
};

/** Pods take the defaults that this product and the node read; a pod's spec is fixed but for what Kubernetes lets change. */
export const podRules: KindRules = {
  withDefaults: (pod) =>
    isObject(pod.spec) ? { ...pod, spec: { ...specDefaults, ...withContainerDefaults(pod.spec) } } : pod,
  initialised: (pod) => ({ ...pod, status: { phase: "Pending", qosClass: "BestEffort" } }),
  validate: (pod, old) => [...specCauses(pod), ...(old === undefined ? [] : immutableCauses(pod, old))],
};

function withContainerDefaults(spec: JsonObject): JsonObject {
  const completed: JsonObject = { ...spec };
  for (const member of ["initContainers", "containers"]) {
    const containers = spec[member];
    if (Array.isArray(containers)) completed[member] = containers.map(withOneContainersDefaults);
  }
  return completed;
}

function withOneContainersDefaults(container: unknown): unknown {
  if (!isObject(container)) return container;
  const ports = listIn(container, "ports").map((port) => (isObject(port) ? { protocol: "TCP", ...port } : port));
  return { imagePullPolicy: "IfNotPresent", ...container, ...(ports.length === 0 ? {} : { ports }) };
}

function specCauses(pod: KubeObject): StatusCause[] {
  if (!isObject(pod.spec)) return [required("spec")];
  const containers = listIn(pod.spec, "containers");
  if (containers.length === 0) return [required("spec.containers")];
  return containers.flatMap((container, index) => [
    ...((stringIn(container, "name") ?? "") === "" ? [required(`spec.containers[${index}].name`)] : []),
    ...((stringIn(container, "image") ?? "") === "" ? [required(`spec.containers[${index}].image`)] : []),
  ]);
}

const immutableRule =
  "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/** Whoever gives a pod to a node does so by a Binding: a patch of nodeName is refused like any other. */
function immutableCauses(pod: KubeObject, old: KubeObject): StatusCause[] {
  if (isDeepStrictEqual(fixedPart(pod.spec), fixedPart(old.spec))) return [];
  return [{ reason: "FieldValueForbidden", field: "spec", message: immutableRule }];
}

function fixedPart(spec: unknown): JsonObject {
  if (!isObject(spec)) return {};
  const { activeDeadlineSeconds: _a, tolerations: _t, ...fixed } = spec;
  const withoutImages = (containers: unknown[]) =>
    containers.map((container) => (isObject(container) ? { ...container, image: "" } : container));
  return {
    ...fixed,
    containers: withoutImages(listIn(spec, "containers")),
    initContainers: withoutImages(listIn(spec, "initContainers")),
  };
}
