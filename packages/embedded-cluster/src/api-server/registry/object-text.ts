import { isObject, valueAt } from "../../json.ts";
import type { KubeObject } from "../../resource-api.ts";
import { internalError } from "../refusals.ts";

/** apiVersion, kind and metadata come first, in this order: a list of a built-in kind cuts the first two off as text. */
export function serialise(object: KubeObject, rv: number): string {
  const { apiVersion, kind, metadata, ...members } = object;
  return JSON.stringify({ apiVersion, kind, metadata: { ...metadata, resourceVersion: String(rv) }, ...members });
}

/** Reads back what serialise wrote. */
export function parse(body: string): KubeObject {
  const value: unknown = JSON.parse(body);
  if (!isStoredObject(value)) throw internalError("the store holds something that is not an object");
  return value;
}

function isStoredObject(value: unknown): value is KubeObject {
  return isObject(value) && typeof value.kind === "string" && typeof valueAt(value, "metadata.name") === "string";
}
