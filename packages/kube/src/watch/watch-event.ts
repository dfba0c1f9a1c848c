import { at, integerOf, textOf } from "../objects/json.ts";

/** One line of a watch. */
export type WatchEvent =
  | { readonly t: "changed"; readonly kind: ChangeKind; readonly object: unknown; readonly version: string }
  | { readonly t: "bookmark"; readonly version: string }
  | { readonly t: "error"; readonly code: number | undefined; readonly message: string };

export type ChangeKind = "ADDED" | "MODIFIED" | "DELETED";

/** Reads one line of a watch; undefined when it is none. */
export function watchEventOf(line: string): WatchEvent | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(line);
  } catch {
    return undefined;
  }
  const type = at(parsed, "type");
  const object = at(parsed, "object");
  if (type === "ERROR") {
    return {
      t: "error",
      code: integerOf(at(object, "code")),
      message: textOf(at(object, "message")) ?? "no explanation",
    };
  }
  const version = textOf(at(object, "metadata", "resourceVersion"));
  if (version === undefined) return undefined;
  if (type === "BOOKMARK") return { t: "bookmark", version };
  if (type === "ADDED" || type === "MODIFIED" || type === "DELETED")
    return { t: "changed", kind: type, object, version };
  return undefined;
}
