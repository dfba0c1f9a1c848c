import { boundToken, openBoundToken } from "./bound-token.ts";
import { invalidRequest } from "./interceptors/request-validation.ts";

/** Binds the cluster's version to the namespace and the filter under which a watcher heard all up to it. */
export function bookmarkOf(version: string, under: object): string {
  return boundToken(version, under);
}

/** The version of a bookmark; undefined for none. INVALID_REQUEST for one of another namespace or filter: what it knows is something else. */
export function versionOfBookmark(bookmark: string, under: object): string | undefined {
  if (bookmark === "") return undefined;
  const opened = openBoundToken(bookmark, under);
  if (opened.t === "value") return opened.value;
  const description =
    opened.t === "malformed"
      ? "is not a bookmark of this service"
      : "belongs to another namespace or filter; begin without it";
  throw invalidRequest([{ field: "bookmark", description }]);
}
