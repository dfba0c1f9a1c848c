import { isObject } from "../../../json.ts";
import { memberSchema } from "./conform.ts";
import type { Schema } from "./structural-schema.ts";

/** The paths of members that a schema does not know, and that conforming would drop in silence. */
export function unknownFields(schema: Schema, value: unknown, path: string): string[] {
  if (Array.isArray(value)) {
    const { items } = schema;
    return items === undefined ? [] : value.flatMap((item, index) => unknownFields(items, item, `${path}[${index}]`));
  }
  if (!isObject(value) || schema.type !== "object") return [];
  return Object.entries(value).flatMap(([member, given]) => {
    const known = memberSchema(schema, member);
    return known === undefined ? [`${path}.${member}`] : unknownFields(known, given, `${path}.${member}`);
  });
}
