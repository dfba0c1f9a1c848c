import type { KubeObject, ObjectRef, OwnerReference, ResourceRef } from "../resource-api.ts";

export const sandboxes: ResourceRef = { group: "agents.x-k8s.io", version: "v1beta1", plural: "sandboxes" };
export const pods: ResourceRef = { group: "", version: "v1", plural: "pods" };
export const services: ResourceRef = { group: "", version: "v1", plural: "services" };
export const claims: ResourceRef = { group: "", version: "v1", plural: "persistentvolumeclaims" };
export const events: ResourceRef = { group: "", version: "v1", plural: "events" };

/** On every pod, Service and claim of a sandbox; the Service selects by it. */
export const nameHashLabel = "agents.x-k8s.io/sandbox-name-hash";
/** An unowned object that carries this as "true" may be taken over. */
export const adoptableLabel = "agents.x-k8s.io/adoptable";
export const createdByLabel = "agents.x-k8s.io/created-by";
/** On a Sandbox: the name of its pod. */
export const podNameAnnotation = "agents.x-k8s.io/pod-name";
/** On a pod: which of its labels and annotations came from the template, as sorted lists. */
export const propagatedLabelsAnnotation = "agents.x-k8s.io/propagated-labels";
export const propagatedAnnotationsAnnotation = "agents.x-k8s.io/propagated-annotations";

/** The real controller notes its traces here; a template cannot set it. */
const traceAnnotation = "opentelemetry.io/trace-context";

/** FNV-1a, 32 bits, of the Sandbox's name, as 8 hex digits. */
export function nameHash(name: string): string {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(name)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash.toString(16).padStart(8, "0");
}

/** Keys that a template cannot set: they are the system's. */
export function isSystemKey(key: string): boolean {
  return key.startsWith("agents.x-k8s.io/") || key.startsWith("extensions.agents.x-k8s.io/") || key === traceAnnotation;
}

/** The owner reference that makes a Sandbox the controller of an object. */
export function controllerReference(sandbox: KubeObject): OwnerReference {
  return {
    apiVersion: "agents.x-k8s.io/v1beta1",
    kind: "Sandbox",
    name: sandbox.metadata.name,
    uid: sandbox.metadata.uid ?? "",
    controller: true,
    blockOwnerDeletion: true,
  };
}

/** The object's controller, if it has one. */
export function controllerOf(object: KubeObject): OwnerReference | undefined {
  return (object.metadata.ownerReferences ?? []).find((owner) => owner.controller === true);
}

export type Ownership = "ours" | "unowned" | "foreign";

/** Whose object it is, by the controller's uid. */
export function ownershipOf(object: KubeObject, sandbox: KubeObject): Ownership {
  const controller = controllerOf(object);
  if (controller === undefined) return "unowned";
  return controller.uid === sandbox.metadata.uid ? "ours" : "foreign";
}

/** Tells whether an unowned object may be taken over by the Sandbox of this hash. */
export function isAdoptable(object: KubeObject, hash: string): boolean {
  const labels = object.metadata.labels ?? {};
  return labels[adoptableLabel] === "true" || labels[nameHashLabel] === hash;
}

export function refOf(resource: ResourceRef, object: KubeObject): ObjectRef {
  return { resource, namespace: object.metadata.namespace ?? "", name: object.metadata.name };
}

/** The refusal to use an object of another controller, in the controller's words. */
export function ownedByOther(what: string, object: KubeObject, sandbox: KubeObject): Error {
  const owner = controllerOf(object);
  return new Error(
    `${what} "${object.metadata.name}" is owned by ${owner?.kind}/${owner?.name} (UID: ${owner?.uid}), not by sandbox "${sandbox.metadata.name}"`,
  );
}

/** The refusal to take over an object that nobody marked for it. */
export function notAdoptable(what: string, object: KubeObject): Error {
  return new Error(
    `cannot adopt unowned ${what} "${object.metadata.name}": missing required pool authorization label ("${adoptableLabel}") or sandbox tracking label ("${nameHashLabel}")`,
  );
}
