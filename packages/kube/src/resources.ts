import { sandboxResource, templateResource } from "@holdfast/contract";

/** A kind of object of the cluster, in the words of the API server. */
export interface Resource {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
}

export const sandboxes: Resource = sandboxResource;
export const templates: Resource = templateResource;
export const pods: Resource = { group: "", version: "v1", plural: "pods" };
export const claims: Resource = { group: "", version: "v1", plural: "persistentvolumeclaims" };

/** The path of the objects of a kind in a namespace, or of one of them. */
export function pathOf(resource: Resource, namespace: string, name?: string): string {
  const root = resource.group === "" ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`;
  const collection = `${root}/namespaces/${namespace}/${resource.plural}`;
  return name === undefined ? collection : `${collection}/${name}`;
}

/** As a Role names it: `sandboxes.agents.x-k8s.io`, or `pods`. */
export function qualified(resource: Resource): string {
  return resource.group === "" ? resource.plural : `${resource.plural}.${resource.group}`;
}

/** True for a text that can name an object: it is a path segment that needs no escaping and cannot climb. */
export function isObjectName(text: string): boolean {
  return text.length <= 253 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(text);
}
