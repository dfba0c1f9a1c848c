import { isDeepStrictEqual } from "node:util";
import type { StatusCause } from "../../../api-status-error.ts";
import { isObject, type JsonObject } from "../../../json.ts";
import type { KubeObject } from "../../../resource-api.ts";
import { forbiddenField, Undecodable } from "../../refusals.ts";
import { goKindOf } from "../go-json.ts";
import { invalidValue } from "../metadata-rules.ts";
import type { KindRules } from "./kind-rules.ts";
import { unknownMembers } from "./unknown-members.ts";

const self = { kind: "Secret", version: "v1" };

const members = ["apiVersion", "kind", "metadata", "type", "data", "stringData", "immutable"];

/** `stringData` is for writing only: it ends up in `data`. */
export const secretRules: KindRules = {
  withDefaults: (secret) => {
    const { stringData, data: sent, type, ...stored } = secret;
    assertShape(secret);
    const data: JsonObject = {};
    for (const [key, value] of Object.entries(isObject(sent) ? sent : {})) data[key] = value ?? ""; // as Go reads a null
    for (const [key, value] of Object.entries(isObject(stringData) ? stringData : {})) {
      data[key] = Buffer.from(typeof value === "string" ? value : "").toString("base64"); // a null
    }
    assertBase64(data);
    return {
      ...stored,
      apiVersion: secret.apiVersion,
      kind: secret.kind,
      metadata: secret.metadata,
      type: type ?? "Opaque",
      ...(Object.keys(data).length === 0 ? {} : { data }),
    };
  },
  unknownFields: (body) => unknownMembers(body, members),
  validate: (secret, old) => [...keyCauses(secret.data), ...(old === undefined ? [] : fixedCauses(secret, old))],
};

const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/u;

function assertShape({ type, data, stringData, immutable }: KubeObject): void {
  const refuse = (value: unknown, member: string, goType: string): never => {
    const why = `json: cannot unmarshal ${goKindOf(value)} into Go struct field Secret.${member} of type ${goType}`;
    throw new Undecodable(self, why);
  };
  if (typeof (type ?? "") !== "string") refuse(type, "type", "v1.SecretType");
  if (typeof (immutable ?? false) !== "boolean") refuse(immutable, "immutable", "bool");
  const assertTexts = (texts: unknown, member: string, goType: string): void => {
    if (texts !== undefined && texts !== null && !isObject(texts)) refuse(texts, member, `map[string]${goType}`);
    for (const value of Object.values(isObject(texts) ? texts : {})) {
      if (typeof (value ?? "") !== "string") refuse(value, member, goType);
    }
  };
  assertTexts(data, "data", "[]uint8");
  assertTexts(stringData, "stringData", "string");
}

function assertBase64(data: JsonObject): void {
  for (const value of Object.values(data)) {
    if (!base64.test(String(value))) throw new Undecodable(self, "illegal base64 data");
  }
}

const keyPattern = /^[-._a-zA-Z0-9]{1,253}$/u;
const keyRule =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

function keyCauses(data: unknown): StatusCause[] {
  const keys = isObject(data) ? Object.keys(data) : [];
  return keys.filter((key) => !keyPattern.test(key)).map((key) => invalidValue(`data[${key}]`, key, keyRule));
}

function fixedCauses(secret: KubeObject, old: KubeObject): StatusCause[] {
  const causes = secret.type === old.type ? [] : [invalidValue("type", secret.type, "field is immutable")];
  if (old.immutable !== true) return causes;
  const why = "field is immutable when `immutable` is set";
  if (secret.immutable !== true) causes.push(forbiddenField("immutable", why));
  if (!isDeepStrictEqual(secret.data, old.data)) causes.push(forbiddenField("data", why));
  return causes;
}
