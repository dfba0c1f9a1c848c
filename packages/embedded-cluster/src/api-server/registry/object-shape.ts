import { isObject, type JsonObject } from "../../json.ts";
import type { KubeObject, ObjectMeta, OwnerReference } from "../../resource-api.ts";
import { badRequest } from "../refusals.ts";
import { apiVersionOf, type ResourceType } from "../resource-types.ts";

/**
 * Reads a body as an object of a type: kind and apiVersion must agree (absent ones are filled in), metadata must have
 * the shape of ObjectMeta. Unknown metadata members and empty maps and lists are dropped, as the real server drops them.
 */
export function readObject(type: ResourceType, body: unknown): KubeObject {
  if (!isObject(body)) throw badRequest("the request body is not an object");
  const apiVersion = body.apiVersion ?? apiVersionOf(type);
  const kind = body.kind ?? type.kind;
  if (apiVersion !== apiVersionOf(type) || kind !== type.kind) {
    throw badRequest(
      `the object provided is unrecognized (must be of type ${type.kind}): ${String(apiVersion)}, Kind=${String(kind)} is not ${apiVersionOf(type)}, Kind=${type.kind}`,
    );
  }
  const { apiVersion: _a, kind: _k, metadata, ...members } = body;
  return { apiVersion, kind, metadata: readMeta(metadata ?? {}), ...members };
}

function readMeta(value: unknown): ObjectMeta {
  if (!isObject(value)) throw malformed("metadata", "ObjectMeta");
  const meta: ObjectMeta = { name: readString(value, "name") ?? "" };
  for (const field of [
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
  ] as const) {
    const text = readString(value, field);
    if (text !== undefined && text !== "") meta[field] = text;
  }
  for (const field of ["generation", "deletionGracePeriodSeconds"] as const) {
    const number = value[field];
    if (number === undefined || number === null) continue;
    if (typeof number !== "number" || !Number.isSafeInteger(number)) throw malformed(`metadata.${field}`, "int64");
    meta[field] = number;
  }
  for (const field of ["labels", "annotations"] as const) {
    const map = readStringMap(value[field], `metadata.${field}`);
    if (Object.keys(map).length > 0) meta[field] = map;
  }
  const finalizers = readList(value.finalizers, "metadata.finalizers").map((item) => {
    if (typeof item !== "string") throw malformed("metadata.finalizers", "string");
    return item;
  });
  if (finalizers.length > 0) meta.finalizers = [...new Set(finalizers)];
  const owners = readList(value.ownerReferences, "metadata.ownerReferences").map(readOwner);
  if (owners.length > 0) meta.ownerReferences = owners;
  return meta;
}

function readString(value: JsonObject, member: string): string | undefined {
  const found = value[member];
  if (found === undefined || found === null) return undefined;
  if (typeof found !== "string") throw malformed(`metadata.${member}`, "string");
  return found;
}

function readStringMap(value: unknown, path: string): Record<string, string> {
  if (value === undefined || value === null) return {};
  if (!isObject(value)) throw malformed(path, "map[string]string");
  const map: Record<string, string> = {};
  for (const [key, member] of Object.entries(value)) {
    if (typeof member !== "string") throw malformed(`${path}.${key}`, "string");
    if (key === "__proto__") throw badRequest(`${path}: the embedded cluster does not keep a member named "__proto__"`);
    map[key] = member;
  }
  return map;
}

function readList(value: unknown, path: string): unknown[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw malformed(path, "list");
  return value;
}

function readOwner(value: unknown): OwnerReference {
  if (!isObject(value)) throw malformed("metadata.ownerReferences", "OwnerReference");
  const { apiVersion, kind, name, uid, controller, blockOwnerDeletion } = value;
  if (
    typeof apiVersion !== "string" ||
    typeof kind !== "string" ||
    typeof name !== "string" ||
    typeof uid !== "string"
  ) {
    throw malformed("metadata.ownerReferences", "OwnerReference");
  }
  return {
    apiVersion,
    kind,
    name,
    uid,
    ...(typeof controller === "boolean" ? { controller } : {}),
    ...(typeof blockOwnerDeletion === "boolean" ? { blockOwnerDeletion } : {}),
  };
}

const malformed = (path: string, goType: string) =>
  badRequest(`json: cannot unmarshal value into Go struct field ObjectMeta.${path} of type ${goType}`);
