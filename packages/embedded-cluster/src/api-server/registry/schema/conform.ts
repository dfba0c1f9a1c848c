import { isObject, type JsonObject } from "../../../json.ts";
import type { Schema } from "./structural-schema.ts";

/**
 * Brings a value to its schema as the API server does before it validates: members that the schema does not know are
 * dropped in silence, nulls too, and absent ones are given their defaults. The value is not changed; what does not fit is left.
 */
export function conform(schema: Schema, value: unknown): unknown {
  if (Array.isArray(value)) {
    const { items } = schema;
    return items === undefined ? value : value.map((item) => conform(items, item));
  }
  if (!isObject(value) || schema.type !== "object") return value;
  const conformed: JsonObject = {};
  for (const [member, given] of Object.entries(value)) {
    const known = memberSchema(schema, member);
    if (known === undefined || given === null) continue; // no member here is nullable: a null is as good as absent
    conformed[member] = conform(known, given);
  }
  for (const [member, known] of Object.entries(schema.properties ?? {})) {
    if (conformed[member] === undefined && known.default !== undefined) {
      conformed[member] = conform(known, structuredClone(known.default));
    }
  }
  return conformed;
}

/** The schema of an object's member; undefined where the schema does not know it. */
export function memberSchema(schema: Schema, member: string): Schema | undefined {
  const { properties, additionalProperties } = schema;
  if (properties !== undefined && Object.hasOwn(properties, member)) return properties[member];
  return additionalProperties;
}
