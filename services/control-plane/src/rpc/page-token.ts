import { HoldfastError } from "@holdfast/errors";
import { boundToken, openBoundToken } from "./bound-token.ts";

/** Binds the cluster's continue token to the filter that it was made under. */
export function pageTokenOf(continueToken: string | undefined, filter: object): string {
  return continueToken === undefined ? "" : boundToken(continueToken, filter);
}

/** The continue token of a page token; PAGE_TOKEN_EXPIRED for one that was not made here, or under another filter. */
export function continueTokenOf(pageToken: string, filter: object): string | undefined {
  if (pageToken === "") return undefined;
  const opened = openBoundToken(pageToken, filter);
  if (opened.t === "value") return opened.value;
  const description =
    opened.t === "malformed" ? "is not a next_page_token of this service" : "belongs to a list with another filter";
  throw new HoldfastError("PAGE_TOKEN_EXPIRED", {
    message: `The page was not read: page_token ${description}. List again from the first page.`,
    metadata: { field: "page_token" },
    violations: [{ field: "page_token", description }],
  });
}
