/** A JSON object of somebody else's: nothing about its members is known. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** What the API server sent is not of the shape that its kind has. */
export class ObjectUnreadable extends Error {
  constructor(path: string, wanted: string, found: unknown) {
    super(`${path} is not ${wanted}: ${briefly(found)}`);
    this.name = "ObjectUnreadable";
  }
}

/** True for a JSON object; arrays are not. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The object's own member: `constructor` is not one unless it was sent. Null reads as absent. */
export function member(object: JsonObject, key: string): unknown {
  return Object.hasOwn(object, key) ? (object[key] ?? undefined) : undefined;
}

/** The value at a path of members; undefined as soon as one is absent or no object. For what only explains. */
export function at(value: unknown, ...path: readonly string[]): unknown {
  let here = value;
  for (const key of path) {
    if (!isObject(here)) return undefined;
    here = member(here, key);
  }
  return here;
}

/** The elements, or none when it is not a list. For what only explains. */
export function elements(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The text, or undefined when it is not a text or empty. For what only explains. */
export function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** The integer, or undefined. For what only explains. */
export function integerOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) ? value : undefined;
}

/** Throws unless it is an object. */
export function requireObject(value: unknown, path: string): JsonObject {
  if (!isObject(value)) throw new ObjectUnreadable(path, "an object", value);
  return value;
}

/** Throws unless it is an object or absent. */
export function optionalObject(value: unknown, path: string): JsonObject | undefined {
  return value === undefined || value === null ? undefined : requireObject(value, path);
}

/** Throws unless it is a text that is not empty. */
export function requireText(value: unknown, path: string): string {
  if (typeof value !== "string" || value === "") throw new ObjectUnreadable(path, "a text", value);
  return value;
}

/** Throws unless it is a text or absent. */
export function optionalText(value: unknown, path: string): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "string") throw new ObjectUnreadable(path, "a text", value);
  return value;
}

/** Throws unless it is a list or absent; an absent one is empty. */
export function optionalList(value: unknown, path: string): readonly unknown[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw new ObjectUnreadable(path, "a list", value);
  return value;
}

const briefMaxLength = 80;

function briefly(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > briefMaxLength ? `${text.slice(0, briefMaxLength)}…` : text;
}
