import { createHash } from "node:crypto";

/** A token that callers hand back: a value of ours, bound to what it was made under. It hides and proves nothing. */
export function boundToken(value: string, to: object): string {
  return Buffer.from(`${fingerprint(to)}${value}`, "utf8").toString("base64url");
}

/** The value of a token; `malformed` when it was not made here, `elsewhere` when it was made under something else. */
export function openBoundToken(
  token: string,
  to: object,
): { readonly t: "value"; readonly value: string } | { readonly t: "malformed" | "elsewhere" } {
  const text = /^[A-Za-z0-9_-]+$/.test(token) ? Buffer.from(token, "base64url").toString("utf8") : "";
  const [, bound, value] = /^([0-9a-f]{16})(.+)$/s.exec(text) ?? [];
  if (value === undefined) return { t: "malformed" };
  return bound === fingerprint(to) ? { t: "value", value } : { t: "elsewhere" };
}

function fingerprint(to: object): string {
  return createHash("sha256").update(JSON.stringify(to)).digest("hex").slice(0, 16);
}
