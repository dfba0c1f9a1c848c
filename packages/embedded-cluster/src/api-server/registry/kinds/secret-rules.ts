import { isObject } from "../../../json.ts";
import type { KindRules } from "./kind-rules.ts";

/** `stringData` is for writing only: it ends up in `data`. */
export const secretRules: KindRules = {
  withDefaults: (secret) => {
    const { stringData, ...stored } = secret;
    const data = { ...(isObject(secret.data) ? secret.data : {}) };
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
};
