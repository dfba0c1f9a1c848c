/** One operation of a JSON Patch. There is no `replace`: it fails on an absent member. */
export type PatchOperation =
  | { readonly op: "test"; readonly path: string; readonly value: unknown }
  | { readonly op: "add"; readonly path: string; readonly value: unknown };

/** The JSON Pointer of these members: `~` is `~0` and `/` is `~1`. */
export function pointer(...members: readonly string[]): string {
  return members.map((name) => `/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

/** Requires a value as it was read. */
export const test = (path: string, value: unknown): PatchOperation => ({ op: "test", path, value });

/** Writes a value, whether or not the member is there. Its parent must be. */
export const add = (path: string, value: unknown): PatchOperation => ({ op: "add", path, value });
