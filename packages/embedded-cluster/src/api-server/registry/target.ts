import type { KubeObject } from "../../resource-api.ts";
import { internalError } from "../refusals.ts";
import { findKind, type ResourceType, resourceTypes, storageNameOf } from "../resource-types.ts";
import type { ObjectKey, StoredObject } from "../store/rows.ts";
import { parse } from "./object-text.ts";

/** Where a request is directed; `namespace` is "" for a cluster-scoped type. */
export interface Target {
  readonly type: ResourceType;
  readonly namespace: string;
  readonly name: string;
}

/** An object with what is needed to act on it. */
export interface Owned {
  readonly target: Target;
  readonly object: KubeObject;
}

export function ownedOf(stored: StoredObject): Owned {
  const object = parse(stored.body);
  const type = findKind(object.apiVersion, object.kind);
  if (type === undefined) throw internalError(`the store holds a ${object.kind}, which is not served`);
  return { target: { type, namespace: stored.namespace, name: stored.name }, object };
}

export function namespaceType(): ResourceType {
  const found = resourceTypes.find((type) => type.kind === "Namespace");
  if (found === undefined) throw internalError("namespaces are not served");
  return found;
}

export function keyOf({ type, namespace, name }: Target): ObjectKey {
  return { resource: storageNameOf(type), namespace, name };
}
