import { isDeepStrictEqual } from "node:util";
import type { StatusCause } from "../../../api-status-error.ts";
import { isObject, type JsonObject } from "../../../json.ts";
import { required } from "../metadata-rules.ts";
import { memberSchema } from "./conform.ts";
import type { Schema } from "./structural-schema.ts";

/** Where a conformed value breaks its schema, in the API server's words. */
export function violations(schema: Schema, value: unknown, path: string): StatusCause[] {
  if (schema["x-kubernetes-int-or-string"] === true) return intOrString(schema, value, path);
  const wrongType = typeViolations(schema, value, path);
  if (wrongType.length > 0) return [...wrongType, ...enumViolations(schema, value, path)];
  const own = [...enumViolations(schema, value, path), ...scalarViolations(schema, value, path)];
  if (Array.isArray(value)) return [...own, ...listViolations(schema, value, path)];
  if (isObject(value)) return [...own, ...objectViolations(schema, value, path)];
  return own;
}

function objectViolations(schema: Schema, value: JsonObject, path: string): StatusCause[] {
  const missing = (schema.required ?? []).filter((member) => value[member] === undefined);
  const below = Object.entries(value).flatMap(([member, given]) => {
    const known = memberSchema(schema, member);
    return known === undefined ? [] : violations(known, given, `${path}.${member}`);
  });
  return [...missing.map((member) => required(`${path}.${member}`)), ...below];
}

function listViolations(schema: Schema, value: readonly unknown[], path: string): StatusCause[] {
  const { items } = schema;
  const below = items === undefined ? [] : value.flatMap((item, index) => violations(items, item, `${path}[${index}]`));
  return [...duplicates(schema, value, path), ...below];
}

/** A list that is a map or a set must not hold one key twice. */
function duplicates(schema: Schema, value: readonly unknown[], path: string): StatusCause[] {
  const kind = schema["x-kubernetes-list-type"];
  if (kind !== "map" && kind !== "set") return [];
  const names = schema["x-kubernetes-list-map-keys"] ?? [];
  const seen = new Set<string>();
  return value.flatMap((item, index) => {
    const identity =
      kind === "set" ? item : Object.fromEntries(names.map((name) => [name, isObject(item) ? item[name] : undefined]));
    const key = JSON.stringify(identity);
    if (!seen.has(key)) {
      seen.add(key);
      return [];
    }
    return [{ reason: "FieldValueDuplicate", field: `${path}[${index}]`, message: `Duplicate value: ${key}` }];
  });
}

function typeViolations(schema: Schema, value: unknown, path: string): StatusCause[] {
  const found = typeOf(value);
  const { type, format } = schema;
  if (type === undefined || found === type || (type === "number" && found === "integer")) return [];
  if (type === "integer" && found === "number" && format !== undefined) {
    const rule = `Checked value must be of type integer with format ${format} in ${path}`;
    return [
      wrongTypeCause(path, format, "float64"),
      { reason: "FieldValueInvalid", field: "<nil>", message: `Invalid value: "": ${rule}` },
    ];
  }
  return [wrongTypeCause(path, type, found)];
}

function wrongTypeCause(path: string, wanted: string, found: string): StatusCause {
  const text = JSON.stringify(found);
  const message = `Invalid value: ${text}: ${path} in body must be of type ${wanted}: ${text}`;
  return { reason: "FieldValueTypeInvalid", field: path, message };
}

function typeOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value;
}

function enumViolations(schema: Schema, value: unknown, path: string): StatusCause[] {
  if (schema.enum === undefined || schema.enum.some((allowed) => isDeepStrictEqual(allowed, value))) return [];
  const supported = schema.enum.map((item) => JSON.stringify(item)).join(", ");
  return [
    {
      reason: "FieldValueNotSupported",
      field: path,
      message: `Unsupported value: ${JSON.stringify(value)}: supported values: ${supported}`,
    },
  ];
}

function scalarViolations(schema: Schema, value: unknown, path: string): StatusCause[] {
  const say = (rule: string): StatusCause => ({
    reason: "FieldValueInvalid",
    field: path,
    message: `Invalid value: ${JSON.stringify(value)}: ${path} in body ${rule}`,
  });
  const found: StatusCause[] = [];
  if (typeof value === "string") {
    const { pattern, minLength, maxLength, format } = schema;
    if (pattern !== undefined && !patternOf(pattern).test(value)) found.push(say(`should match '${pattern}'`));
    if (minLength !== undefined && value.length < minLength)
      found.push(say(`should be at least ${minLength} chars long`));
    if (maxLength !== undefined && value.length > maxLength) {
      found.push({
        reason: "FieldValueTooLong",
        field: path,
        message: `Too long: may not be more than ${maxLength} bytes`,
      });
    }
    if (format === "date-time" && !isDateTime(value)) {
      found.push({ ...say(`must be of type date-time: ${JSON.stringify(value)}`), reason: "FieldValueTypeInvalid" });
    }
  }
  if (typeof value === "number") {
    const { minimum, format } = schema;
    if (minimum !== undefined && value < minimum) found.push(say(`should be greater than or equal to ${minimum}`));
    if (format === "int32" && Math.abs(value) > 2 ** 31) found.push(say("must be of type int32"));
  }
  return found;
}

function intOrString(schema: Schema, value: unknown, path: string): StatusCause[] {
  if (typeof value === "string") return scalarViolations(schema, value, path);
  if (typeof value === "number" && Number.isInteger(value)) return [];
  const found = typeOf(value);
  const text = `Invalid value: "": ${JSON.stringify(path)} must validate at least one schema (anyOf)`;
  return [
    wrongTypeCause(path, "integer,string", found),
    { reason: "FieldValueInvalid", field: "<nil>", message: text },
    wrongTypeCause(path, "integer", found),
  ];
}

function isDateTime(value: string): boolean {
  const shape = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/u;
  return shape.test(value) && !Number.isNaN(Date.parse(value));
}

const patterns = new Map<string, RegExp>();

function patternOf(pattern: string): RegExp {
  const known = patterns.get(pattern) ?? new RegExp(pattern, "u");
  patterns.set(pattern, known);
  return known;
}
