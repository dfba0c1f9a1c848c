import { isDeepStrictEqual } from "node:util";
import type { StatusCause } from "../../../api-status-error.ts";
import { isObject, type JsonObject } from "../../../json.ts";
import type { KubeObject } from "../../../resource-api.ts";
import { badRequest } from "../../refusals.ts";
import { invalidValue } from "../metadata-rules.ts";
import type { KindRules } from "./kind-rules.ts";
import { unknownMembers } from "./unknown-members.ts";

const members = ["apiVersion", "kind", "metadata", "type", "data", "stringData", "immutable"];

/** `stringData` is for writing only: it ends up in `data`. */
export const secretRules: KindRules = {
  withDefaults: (secret) => {
    const { stringData, data: sent, type, ...stored } = secret;
    const data: JsonObject = { ...(isObject(sent) ? sent : {}) };
    for (const [key, value] of Object.entries(isObject(stringData) ? stringData : {})) {
      data[key] = Buffer.from(String(value)).toString("base64");
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

function assertBase64(data: JsonObject): void {
  for (const value of Object.values(data)) {
    if (typeof value === "string" && base64.test(value)) continue;
    const what = typeof value === "string" ? "illegal base64 data" : "a value of Secret.data is no string";
    throw badRequest(`Secret in version "v1" cannot be handled as a Secret: ${what}`);
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
  if (secret.immutable !== true || !isDeepStrictEqual(secret.data, old.data)) {
    const message = "Forbidden: field is immutable when `immutable` is set";
    causes.push({ reason: "FieldValueForbidden", field: "data", message });
  }
  return causes;
}
