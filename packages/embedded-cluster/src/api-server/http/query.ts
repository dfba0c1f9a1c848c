import { isObject } from "../../json.ts";
import type { DeleteWish } from "../../resource-api.ts";
import { badRequest, invalidOptions } from "../refusals.ts";
import type { ListWish } from "../registry/list-page.ts";
import type { WatchStart } from "../registry/watch-cursor.ts";

/** Reads the options of a list. */
export function listWishOf(query: URLSearchParams): ListWish {
  const version = versionOf(query);
  const match = query.get("resourceVersionMatch");
  if (match !== null && match !== "Exact" && match !== "NotOlderThan") {
    throw invalidOptions("ListOptions", "resourceVersionMatch", match, ["Exact", "NotOlderThan", ""]);
  }
  const exact = match === "Exact" && version !== undefined && version > 0;
  return {
    labelSelector: query.get("labelSelector") ?? undefined,
    fieldSelector: query.get("fieldSelector") ?? undefined,
    limit: integerOf(query, "limit"),
    continue: query.get("continue") ?? undefined,
    exactVersion: exact ? version : undefined,
    notOlderThan: exact ? undefined : version,
  };
}

export interface WatchWish {
  readonly start: WatchStart;
  readonly labelSelector: string | undefined;
  readonly fieldSelector: string | undefined;
  readonly timeoutSeconds: number | undefined;
  readonly bookmarks: boolean;
}

/** Reads the options of a watch. Version 0 or none begins with what is there now. */
export function watchWishOf(query: URLSearchParams): WatchWish {
  if (isTrue(query.get("sendInitialEvents"))) {
    throw invalidOptions(
      "ListOptions",
      "sendInitialEvents",
      true,
      [],
      "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled",
    );
  }
  const version = versionOf(query);
  return {
    start: version === undefined || version === 0 ? { t: "now" } : { t: "after", rv: version },
    labelSelector: query.get("labelSelector") ?? undefined,
    fieldSelector: query.get("fieldSelector") ?? undefined,
    timeoutSeconds: integerOf(query, "timeoutSeconds"),
    bookmarks: isTrue(query.get("allowWatchBookmarks")),
  };
}

export function isWatch(query: URLSearchParams): boolean {
  return isTrue(query.get("watch"));
}

/** Reads the options of a delete from its query and its body; the body wins. */
export function deleteWishOf(query: URLSearchParams, body: unknown): DeleteWish {
  if (body !== undefined && !isObject(body)) throw badRequest("the request body is not DeleteOptions");
  const options = body ?? {};
  refuseDryRun(options.dryRun);
  const grace = options.gracePeriodSeconds ?? integerOf(query, "gracePeriodSeconds");
  if (grace !== undefined && grace !== null && (typeof grace !== "number" || !Number.isSafeInteger(grace))) {
    throw badRequest("gracePeriodSeconds must be an integer");
  }
  const policy = readPolicy(options.propagationPolicy ?? query.get("propagationPolicy"));
  const preconditions = readPreconditions(options.preconditions);
  return {
    ...(typeof grace === "number" ? { gracePeriodSeconds: grace } : {}),
    ...(policy === undefined ? {} : { propagationPolicy: policy }),
    ...(preconditions === undefined ? {} : { preconditions }),
  };
}

/** Throws 400 on a dry run, which this server does not serve: to apply it would be worse than to refuse it. */
export function refuseDryRun(value: unknown): void {
  if (value === undefined || value === null || value === "" || (Array.isArray(value) && value.length === 0)) return;
  throw badRequest("dryRun is not served by the embedded cluster; nothing was changed");
}

function readPolicy(value: unknown): DeleteWish["propagationPolicy"] {
  if (value === undefined || value === null || value === "") return undefined;
  if (value === "Background" || value === "Foreground" || value === "Orphan") return value;
  throw invalidOptions("DeleteOptions", "propagationPolicy", value, ["Background", "Foreground", "Orphan"]);
}

function readPreconditions(value: unknown): DeleteWish["preconditions"] {
  if (value === undefined || value === null) return undefined;
  if (!isObject(value)) throw badRequest("preconditions must be an object");
  const { uid, resourceVersion } = value;
  for (const member of [uid, resourceVersion]) {
    if (member !== undefined && member !== null && typeof member !== "string") {
      throw badRequest("preconditions.uid and preconditions.resourceVersion must be strings");
    }
  }
  return {
    ...(typeof uid === "string" ? { uid } : {}),
    ...(typeof resourceVersion === "string" ? { resourceVersion } : {}),
  };
}

function versionOf(query: URLSearchParams): number | undefined {
  const text = query.get("resourceVersion");
  if (text === null || text === "") return undefined;
  const version = /^\d+$/u.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(version)) {
    throw badRequest(
      `Invalid value: ${JSON.stringify(text)}: strconv.ParseUint: parsing ${JSON.stringify(text)}: invalid syntax`,
    );
  }
  return version;
}

function integerOf(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null || text === "") return undefined;
  const number = /^-?\d+$/u.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(number)) throw badRequest(`${name}: ${JSON.stringify(text)} is not an integer`);
  return number;
}

function isTrue(text: string | null): boolean {
  return text === "true" || text === "1";
}
