import { isDeepStrictEqual } from "node:util";
import type { StatusCause } from "../../../api-status-error.ts";
import { isObject, type JsonObject, listIn, stringIn, valueAt } from "../../../json.ts";
import type { KubeObject } from "../../../resource-api.ts";
import { Undecodable, unsupportedValue } from "../../refusals.ts";
import { goKindOf } from "../go-json.ts";
import { duplicate, invalidValue, labelRule, required } from "../metadata-rules.ts";
import { conform } from "../schema/conform.ts";
import { podSpecOf, readKindSchema } from "../schema/structural-schema.ts";
import { unknownFields } from "../schema/unknown-fields.ts";
import type { KindRules } from "./kind-rules.ts";
import { unknownMembers } from "./unknown-members.ts";

/** A pod's spec is known by the pod template of a Sandbox, which is one. */
const podSpecSchema = podSpecOf(readKindSchema("sandbox.json"));

const topLevel = ["apiVersion", "kind", "metadata", "spec", "status"];

const specDefaults: JsonObject = {
  restartPolicy: "Always",
  terminationGracePeriodSeconds: 30,
  dnsPolicy: "ClusterFirst",
  schedulerName: "default-scheduler",
  enableServiceLinks: true,
};

/** Pods take the defaults that this product and the node read; a pod's spec is fixed but for what Kubernetes lets change. */
export const podRules: KindRules = {
  withDefaults: (pod) => {
    const { spec: sent = {} } = pod;
    assertWholeSeconds(valueAt(sent, "activeDeadlineSeconds"));
    const spec = conform(podSpecSchema, sent);
    return isObject(spec) ? { ...pod, spec: { ...specDefaults, ...withContainerDefaults(spec) } } : pod;
  },
  unknownFields: (body) => [
    ...unknownMembers(body, topLevel),
    ...(isObject(body) ? unknownFields(podSpecSchema, body.spec, "spec") : []),
  ],
  initialised: (pod) => ({ ...pod, status: { phase: "Pending", qosClass: "BestEffort" } }),
  validate: (pod, old) => [
    ...specCauses(pod),
    ...deadlineCauses(pod, old),
    ...(old === undefined ? [] : [...imageCauses(pod), ...immutableCauses(pod, old)]),
  ],
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
  const env = listIn(container, "env").map(withFieldVersion);
  return {
    imagePullPolicy: pullPolicyOf(stringIn(container, "image") ?? ""),
    terminationMessagePath: "/dev/termination-log",
    terminationMessagePolicy: "File",
    ...container,
    ...(ports.length === 0 ? {} : { ports }),
    ...(env.length === 0 ? {} : { env }),
  };
}

/** An image that is named by nothing lasting is pulled anew each time. */
function pullPolicyOf(image: string): string {
  const [, tag = "latest"] = image.slice(image.lastIndexOf("/") + 1).split(/[:@]/u);
  return tag === "latest" ? "Always" : "IfNotPresent";
}

function withFieldVersion(entry: unknown): unknown {
  const fieldRef = valueAt(entry, "valueFrom.fieldRef");
  if (!isObject(entry) || !isObject(fieldRef) || !isObject(entry.valueFrom)) return entry;
  return { ...entry, valueFrom: { ...entry.valueFrom, fieldRef: { apiVersion: "v1", ...fieldRef } } };
}

/** A container's name is part of paths on the node. */
const labelName = /^(?=.{1,63}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?$/u;

const restartPolicies = ["Always", "OnFailure", "Never"];

function specCauses(pod: KubeObject): StatusCause[] {
  if (!isObject(pod.spec)) return [required("spec.containers")];
  const { restartPolicy } = pod.spec;
  const volumes = new Set(listIn(pod.spec, "volumes").map((volume) => stringIn(volume, "name")));
  return [
    ...(listIn(pod.spec, "containers").length === 0 ? [required("spec.containers")] : []),
    ...["initContainers", "containers"].flatMap((member) =>
      containerCauses(`spec.${member}`, listIn(pod.spec, member), volumes),
    ),
    ...(restartPolicies.includes(String(restartPolicy))
      ? []
      : [unsupportedValue("spec.restartPolicy", restartPolicy, restartPolicies)]),
  ];
}

function containerCauses(
  path: string,
  containers: readonly unknown[],
  volumes: ReadonlySet<string | undefined>,
): StatusCause[] {
  const names = new Set<string>();
  return containers.flatMap((container, index) => {
    const at = `${path}[${index}]`;
    const name = stringIn(container, "name") ?? "";
    const isTaken = names.has(name);
    names.add(name);
    const lost = listIn(container, "volumeMounts").flatMap((mount, position) => {
      const wanted = stringIn(mount, "name");
      return volumes.has(wanted) ? [] : [notFoundCause(`${at}.volumeMounts[${position}].name`, wanted ?? "")];
    });
    return [
      ...(name === "" || labelName.test(name) ? [] : [invalidValue(`${at}.name`, name, labelRule)]),
      ...(name === "" ? [required(`${at}.name`)] : isTaken ? [duplicate(`${at}.name`, name)] : []),
      ...((stringIn(container, "image") ?? "") === "" ? [required(`${at}.image`)] : []),
      ...lost,
    ];
  });
}

function assertWholeSeconds(value: unknown): void {
  if (value === undefined || value === null || Number.isSafeInteger(value)) return;
  const found = typeof value === "number" ? `number ${value}` : goKindOf(value);
  const why = `json: cannot unmarshal ${found} into Go struct field PodSpec.spec.activeDeadlineSeconds of type int64`;
  throw new Undecodable({ kind: "Pod", version: "v1" }, why);
}

const maxInt32 = 2 ** 31 - 1;

/** A deadline may be set and brought forward, never put off or taken away. */
function deadlineCauses(pod: KubeObject, old: KubeObject | undefined): StatusCause[] {
  const field = "spec.activeDeadlineSeconds";
  const wanted = valueAt(pod, field) ?? undefined;
  const before = valueAt(old, field) ?? undefined;
  if (wanted === undefined)
    return before === undefined
      ? []
      : [invalidValue(field, null, "must not update from a positive integer to nil value")];
  const seconds = Number(wanted);
  const causes: StatusCause[] = [];
  if (seconds < 1 || seconds > maxInt32)
    causes.push(invalidValue(field, wanted, `must be between 1 and ${maxInt32}, inclusive`));
  if (old === undefined || wanted === before) return causes;
  if (seconds < 0 || seconds > maxInt32)
    causes.push(invalidValue(field, wanted, `must be between 0 and ${maxInt32}, inclusive`));
  else if (before !== undefined && seconds > Number(before))
    causes.push(invalidValue(field, wanted, "must be less than or equal to previous value"));
  return causes;
}

/** An update's images are looked at once more: a missing one is listed twice. */
function imageCauses(pod: KubeObject): StatusCause[] {
  return ["initContainers", "containers"].flatMap((member) =>
    listIn(pod.spec, member).flatMap((container, index) =>
      (stringIn(container, "image") ?? "") === "" ? [required(`spec.${member}[${index}].image`)] : [],
    ),
  );
}

function notFoundCause(field: string, value: string): StatusCause {
  return { reason: "FieldValueNotFound", field, message: `Not found: ${JSON.stringify(value)}` };
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
