import { createHash } from "node:crypto";

/**
 * JSON with keys sorted by code unit at every level, undefined members left out, lists in their order. Written out here because an
 * object of JavaScript would put keys like "10" and "9" in its own order.
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const members = Object.entries(value)
    .filter(([, inner]) => inner !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, inner]) => `${JSON.stringify(key)}:${canonicalJson(inner)}`);
  return `{${members.join(",")}}`;
}

/** The hash that stands on a Sandbox for the pod template it was written with. */
export function podTemplateHash(podTemplate: unknown): string {
  return `sha256:${createHash("sha256").update(canonicalJson(podTemplate)).digest("hex")}`;
}
