import { isObject } from "../../../json.ts";

/** The members of a value besides those that are known, each as a path. */
export function unknownMembers(value: unknown, known: readonly string[], prefix = ""): string[] {
  if (!isObject(value)) return [];
  return Object.keys(value).flatMap((member) => (known.includes(member) ? [] : [`${prefix}${member}`]));
}
