import { isObject } from "../../../json.ts";
import type { KindRules } from "./kind-rules.ts";
import { unknownMembers } from "./unknown-members.ts";

const members = ["apiVersion", "kind", "metadata", "type", "data", "stringData", "immutable"];

/** `stringData` is for writing only: it ends up in `data`. */
export const secretRules: KindRules = {
  withDefaults: (secret) => {
    const { stringData, ...stored } = secret;
    const { data: sent = {} } = secret;
    if (stringData === undefined) return { ...secret, type: secret.type ?? "Opaque", data: sent };
    const data = { ...(isObject(sent) ? sent : {}) };
    for (const [key, value] of Object.entries(isObject(stringData) ? stringData : {})) {
      data[key] = Buffer.from(String(value)).toString("base64");
    }
    return {
      ...stored,
      apiVersion: secret.apiVersion,
      kind: secret.kind,
      metadata: secret.metadata,
      type: secret.type ?? "Opaque",
      data,
    };
  },
  unknownFields: (body) => unknownMembers(body, members),
  validate: ({ data }) =>
    isObject(data) && Object.values(data).every((value) => typeof value === "string")
      ? []
      : [{ reason: "FieldValueInvalid", field: "data", message: "Invalid value: must be a map of base64 strings" }],
};
