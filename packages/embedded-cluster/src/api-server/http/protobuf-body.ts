import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import type { JsonObject } from "../../json.ts";
import { badRequest, protobufNotServed } from "../refusals.ts";

/** kubectl writes what it makes itself, and the reviews it asks for, as protobuf. This is the part of it that is read. */
export const protobufType = "application/vnd.kubernetes.protobuf";

/** The four bytes before a message, and the envelope that names its kind. */
const magic = Buffer.from("k8s\0");

/** A member by its number: its name, what it is, and whether it may come more than once. */
interface Field {
  readonly name: string;
  readonly type: "string" | "bytes" | "int" | "bool" | "map" | "byteMap" | Message;
  readonly isList?: true;
}

type Message = { readonly [number: number]: Field };

const meta: Message = {
  1: { name: "name", type: "string" },
  2: { name: "generateName", type: "string" },
  3: { name: "namespace", type: "string" },
  5: { name: "uid", type: "string" },
  6: { name: "resourceVersion", type: "string" },
  11: { name: "labels", type: "map" },
  12: { name: "annotations", type: "map" },
  14: { name: "finalizers", type: "string", isList: true },
};

const metadata: Field = { name: "metadata", type: meta };
const resourceAttributes: Message = {
  1: { name: "namespace", type: "string" },
  2: { name: "verb", type: "string" },
  3: { name: "group", type: "string" },
  4: { name: "version", type: "string" },
  5: { name: "resource", type: "string" },
  6: { name: "subresource", type: "string" },
  7: { name: "name", type: "string" },
};
const nonResourceAttributes: Message = { 1: { name: "path", type: "string" }, 2: { name: "verb", type: "string" } };

const messages: Readonly<Record<string, Message>> = {
  "v1/Namespace": { 1: metadata },
  "v1/Secret": {
    1: metadata,
    2: { name: "data", type: "byteMap" },
    3: { name: "type", type: "string" },
    4: { name: "stringData", type: "map" },
    5: { name: "immutable", type: "bool" },
  },
  "authentication.k8s.io/v1/SelfSubjectReview": { 1: metadata },
  "authorization.k8s.io/v1/SelfSubjectAccessReview": {
    1: metadata,
    2: {
      name: "spec",
      type: {
        1: { name: "resourceAttributes", type: resourceAttributes },
        2: { name: "nonResourceAttributes", type: nonResourceAttributes },
      },
    },
  },
  "authorization.k8s.io/v1/SelfSubjectRulesReview": {
    1: metadata,
    2: { name: "spec", type: { 1: { name: "namespace", type: "string" } } },
  },
};

/** Reads a body as the object that it is. Throws 415 for a kind whose protobuf is not read here, 400 for what is none. */
export function parseProtobuf(body: Buffer): unknown {
  if (!body.subarray(0, magic.length).equals(magic)) throw badRequest("the body is not a Kubernetes protobuf message");
  try {
    const envelope = read(body.subarray(magic.length), {
      1: { name: "type", type: { 1: { name: "apiVersion", type: "string" }, 2: { name: "kind", type: "string" } } },
      2: { name: "raw", type: "bytes" },
    });
    const { apiVersion = "", kind = "" } = envelope.type as { apiVersion?: string; kind?: string };
    const message = messages[`${apiVersion}/${kind}`];
    if (message === undefined) throw protobufNotServed(`${kind || "an object without a kind"}`);
    return { apiVersion, kind, ...read(envelope.raw as Uint8Array, message) };
  } catch (error) {
    if (error instanceof RangeError || error instanceof TypeError) throw badRequest("the protobuf body cannot be read");
    throw error;
  }
}

function read(bytes: Uint8Array, message: Message): JsonObject {
  const reader = new BinaryReader(bytes);
  const object: JsonObject = {};
  while (reader.pos < reader.len) {
    const [number, wireType] = reader.tag();
    const field = message[number];
    if (field === undefined) {
      reader.skip(wireType, number); // a member that is not known here is dropped, as one of JSON would be
      continue;
    }
    const value = readValue(reader, field, wireType);
    if (value === "") continue; // Go writes an absent string as an empty one
    const before = object[field.name];
    if (field.isList) object[field.name] = [...(Array.isArray(before) ? before : []), value];
    else if (field.type === "map" || field.type === "byteMap")
      object[field.name] = { ...(before ?? {}), ...(value as object) };
    else object[field.name] = value;
  }
  return object;
}

function readValue(reader: BinaryReader, field: Field, wireType: WireType): unknown {
  const { type } = field;
  const expected = type === "int" || type === "bool" ? WireType.Varint : WireType.LengthDelimited;
  if (wireType !== expected) throw new TypeError(`${field.name} is of another type`);
  if (type === "string") return reader.string();
  if (type === "bytes") return reader.bytes();
  if (type === "int") return Number(reader.int64());
  if (type === "bool") return reader.bool();
  if (type === "map" || type === "byteMap") {
    const valueType = type === "map" ? "string" : "bytes";
    const entry = read(reader.bytes(), { 1: { name: "key", type: "string" }, 2: { name: "value", type: valueType } });
    const value =
      type === "map" ? (entry.value ?? "") : Buffer.from((entry.value as Uint8Array) ?? "").toString("base64");
    return { [String(entry.key ?? "")]: value };
  }
  return read(reader.bytes(), type);
}
