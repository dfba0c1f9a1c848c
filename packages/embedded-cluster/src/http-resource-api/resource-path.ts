import type { ObjectRef, ResourceRef } from "../resource-api.ts";

/** The path of a collection; of all namespaces where none is given. */
export function collectionPath({ group, version, plural }: ResourceRef, namespace: string | undefined): string {
  const root = group === "" ? ["api", version] : ["apis", group, version];
  const within = namespace === undefined || namespace === "" ? [] : ["namespaces", namespace];
  return `/${[...root, ...within, plural].map(encodeURIComponent).join("/")}`;
}

/** The path of one object, or of a subresource of it. */
export function objectPath({ resource, namespace, name }: ObjectRef, subresource?: string): string {
  const below = subresource === undefined ? [name] : [name, subresource];
  return `${collectionPath(resource, namespace)}/${below.map(encodeURIComponent).join("/")}`;
}
