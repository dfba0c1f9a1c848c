/** What JSON.parse can give. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [member: string]: Json;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value at a path of members and indices, or undefined. */
export function at(value: Json | undefined, ...path: readonly (string | number)[]): Json | undefined {
  let here: Json | undefined = value;
  for (const step of path) {
    if (Array.isArray(here)) here = typeof step === "number" ? here[step] : undefined;
    else if (isObject(here)) here = here[step];
    else return undefined;
  }
  return here;
}

/** The text at a path. Throws where there is none. */
export function textAt(value: Json | undefined, ...path: readonly (string | number)[]): string {
  const found = at(value, ...path);
  if (typeof found !== "string") throw new Error(`no text at ${path.join(".")} of ${JSON.stringify(value)}`);
  return found;
}

/** The list at a path; empty where there is none. */
export function listAt(value: Json | undefined, ...path: readonly (string | number)[]): readonly Json[] {
  const found = at(value, ...path);
  return Array.isArray(found) ? found : [];
}

/** Only these members of an object, in this order. */
export function pick(value: Json | undefined, ...members: readonly string[]): JsonObject {
  if (!isObject(value)) return {};
  return Object.fromEntries(
    members.flatMap((member) => {
      const found = value[member];
      return found === undefined ? [] : [[member, found]];
    }),
  );
}
