import type { KubeObject, ObjectRef, ResourceRef } from "../resource-api.ts";

export const pods: ResourceRef = { group: "", version: "v1", plural: "pods" };
export const claims: ResourceRef = { group: "", version: "v1", plural: "persistentvolumeclaims" };
export const nodes: ResourceRef = { group: "", version: "v1", plural: "nodes" };
export const events: ResourceRef = { group: "", version: "v1", plural: "events" };

/** Where an object of that collection stands. */
export function refOf(resource: ResourceRef, object: KubeObject): ObjectRef {
  return { resource, namespace: object.metadata.namespace ?? "", name: object.metadata.name };
}

/** Kubernetes' time format: RFC 3339 in whole seconds. */
export function kubeTime(date: Date): string {
  return `${date.toISOString().slice(0, 19)}Z`;
}
