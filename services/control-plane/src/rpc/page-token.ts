import { createHash } from "node:crypto";
import { invalidRequest } from "./interceptors/request-validation.ts";

/** Binds the cluster's continue token to the filter that it was made under. */
export function pageTokenOf(continueToken: string | undefined, filter: object): string {
  if (continueToken === undefined) return "";
  return Buffer.from(`${fingerprint(filter)}${continueToken}`, "utf8").toString("base64url");
}

/** The continue token of a page token; INVALID_REQUEST for one that was not made here, or under another filter. */
export function continueTokenOf(pageToken: string, filter: object): string | undefined {
  if (pageToken === "") return undefined;
  const text = /^[A-Za-z0-9_-]+$/.test(pageToken) ? Buffer.from(pageToken, "base64url").toString("utf8") : "";
  const [, bound, continueToken] = /^([0-9a-f]{16})(.+)$/s.exec(text) ?? [];
  if (continueToken === undefined) {
    throw invalidRequest([{ field: "page_token", description: "is not a next_page_token of this service" }]);
  }
  if (bound !== fingerprint(filter)) {
    throw invalidRequest([{ field: "page_token", description: "belongs to another filter; begin again without it" }]);
  }
  return continueToken;
}

function fingerprint(filter: object): string {
  return createHash("sha256").update(JSON.stringify(filter)).digest("hex").slice(0, 16);
}
