/** Reading untyped JSON without casts. */

export type JsonObject = Record<string, unknown>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The member as an object, or undefined. */
export function objectIn(value: unknown, member: string): JsonObject | undefined {
  const found = isObject(value) ? value[member] : undefined;
  return isObject(found) ? found : undefined;
}

/** The member as a string, or undefined. */
export function stringIn(value: unknown, member: string): string | undefined {
  const found = isObject(value) ? value[member] : undefined;
  return typeof found === "string" ? found : undefined;
}

/** The member as a list, or an empty one. */
export function listIn(value: unknown, member: string): unknown[] {
  const found = isObject(value) ? value[member] : undefined;
  return Array.isArray(found) ? found : [];
}

/** The value at a dotted path of object members, or undefined. */
export function valueAt(value: unknown, path: string): unknown {
  let at: unknown = value;
  for (const member of path.split(".")) at = isObject(at) ? at[member] : undefined;
  return at;
}
