import { isObject, type JsonObject, stringIn } from "../../json.ts";
import type { KubeObject, ObjectMeta, OwnerReference } from "../../resource-api.ts";
import { badRequest, otherKind, Undecodable } from "../refusals.ts";
import { apiVersionOf, type ResourceType } from "../resource-types.ts";
import { goKindOf } from "./go-json.ts";

/**
 * Reads a body as an object of a type: kind and apiVersion must agree (absent ones are filled in), metadata must have
 * the shape of ObjectMeta. Unknown metadata members and empty maps and lists are dropped, as the real server drops them.
 */
export function readObject(type: ResourceType, body: unknown): KubeObject {
  if (!isObject(body)) throw badRequest("the request body is not an object");
  const apiVersion = given(type, body.apiVersion) ?? apiVersionOf(type);
  const kind = given(type, body.kind) ?? type.kind;
  assertKind(type, body, String(apiVersion), String(kind));
  const { apiVersion: _a, kind: _k, metadata, ...members } = body;
  try {
    return { apiVersion: apiVersionOf(type), kind: type.kind, metadata: readMeta(metadata ?? {}), ...members };
  } catch (error) {
    if (!(error instanceof Malformed)) throw error;
    const path = type.custom ? error.member : `metadata.${error.member}`;
    const why = `json: cannot unmarshal ${goKindOf(error.value)} into Go struct field ObjectMeta.${path} of type ${error.goType}`;
    throw new Undecodable(type, why);
  }
}

/** Of a built-in kind an empty kind or version is an absent one. */
function given(type: ResourceType, value: unknown): unknown {
  return value === "" && !type.custom ? undefined : value;
}

/** The real server tells a custom kind from another by its rules, and a built-in one by its conversions. */
function assertKind(type: ResourceType, body: JsonObject, apiVersion: string, kind: string): void {
  const expected = apiVersionOf(type);
  if (apiVersion !== expected && !type.custom) {
    const why = `no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)} in scheme "pkg/runtime/scheme.go:111"`;
    throw new Undecodable(type, why, { kind, version: apiVersion.slice(apiVersion.lastIndexOf("/") + 1) });
  }
  if (apiVersion !== expected) {
    throw badRequest(
      `the API version in the data (${apiVersion}) does not match the expected API version (${expected})`,
    );
  }
  if (kind === type.kind) return;
  if (type.custom) throw otherKind(type, kind, stringIn(body.metadata, "name") ?? "");
  const internal = `(${type.group === "" ? "core" : type.group.split(".")[0]}.${type.kind})`;
  const why = `converting (${type.version}.${kind}) to ${internal}: unknown conversion`;
  throw new Undecodable(type, why, { kind, version: type.version });
}

/** A member of the metadata that is of another type than it must be. */
class Malformed extends Error {
  readonly member: string;
  readonly value: unknown;
  readonly goType: string;

  constructor(member: string, value: unknown, goType: string) {
    super(`${member} must be of type ${goType}`);
    this.member = member;
    this.value = value;
    this.goType = goType;
  }
}

function readMeta(value: unknown): ObjectMeta {
  if (!isObject(value)) throw new Malformed("", value, "ObjectMeta");
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
    if (typeof number !== "number" || !Number.isSafeInteger(number)) throw new Malformed(field, number, "int64");
    meta[field] = number;
  }
  for (const field of ["labels", "annotations"] as const) {
    const map = readStringMap(value[field], field);
    if (Object.keys(map).length > 0) meta[field] = map;
  }
  const finalizers = readList(value.finalizers, "finalizers", "[]string").map((item) => {
    if (typeof item !== "string") throw new Malformed("finalizers", item, "string");
    return item;
  });
  if (finalizers.length > 0) meta.finalizers = [...new Set(finalizers)];
  const owners = readList(value.ownerReferences, "ownerReferences", "[]v1.OwnerReference").map(readOwner);
  if (owners.length > 0) meta.ownerReferences = owners;
  return meta;
}

function readString(value: JsonObject, member: string): string | undefined {
  const found = value[member];
  if (found === undefined || found === null) return undefined;
  if (typeof found !== "string") throw new Malformed(member, found, "string");
  return found;
}

function readStringMap(value: unknown, path: string): Record<string, string> {
  if (value === undefined || value === null) return {};
  if (!isObject(value)) throw new Malformed(path, value, "map[string]string");
  const map: Record<string, string> = {};
  for (const [key, member] of Object.entries(value)) {
    if (member !== null && typeof member !== "string") throw new Malformed(path, member, "string");
    if (key === "__proto__") throw badRequest(`${path}: the embedded cluster does not keep a member named "__proto__"`);
    map[key] = member ?? ""; // as Go reads a null
  }
  return map;
}

function readList(value: unknown, path: string, goType: string): unknown[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw new Malformed(path, value, goType);
  return value;
}

function readOwner(value: unknown): OwnerReference {
  if (!isObject(value)) throw new Malformed("ownerReferences", value, "v1.OwnerReference");
  const { apiVersion = "", kind = "", name = "", uid = "", controller, blockOwnerDeletion } = value;
  if (
    typeof apiVersion !== "string" ||
    typeof kind !== "string" ||
    typeof name !== "string" ||
    typeof uid !== "string"
  ) {
    throw new Malformed(
      "ownerReferences",
      [apiVersion, kind, name, uid].find((part) => typeof part !== "string"),
      "string",
    );
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
