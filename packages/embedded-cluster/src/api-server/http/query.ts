import type { StatusCause } from "../../api-status-error.ts";
import { isObject, type JsonObject } from "../../json.ts";
import type { DeleteWish } from "../../resource-api.ts";
import {
  badRequest,
  forbiddenField,
  invalidOptions,
  tooLargeResourceVersion,
  unforeseen,
  unsupportedValue,
} from "../refusals.ts";
import { goKindOf } from "../registry/go-json.ts";
import type { ListWish } from "../registry/list-page.ts";
import type { WatchStart } from "../registry/watch-cursor.ts";

/** Reads the options of a list. */
export function listWishOf(query: URLSearchParams): ListWish {
  const version = versionOf(query);
  const match = query.get("resourceVersionMatch") ?? "";
  const token = query.get("continue") ?? "";
  const causes = match === "" ? [] : matchCauses(match, version, token);
  if (query.has("sendInitialEvents")) {
    causes.push(forbiddenField("sendInitialEvents", "sendInitialEvents is forbidden for list"));
  }
  if (causes.length > 0) throw invalidOptions("ListOptions", causes);
  if (token !== "" && version !== undefined && version > 0) {
    throw badRequest("specifying resource version is not allowed when using continue");
  }
  const exact = match === "Exact";
  return {
    labelSelector: query.get("labelSelector") ?? undefined,
    fieldSelector: query.get("fieldSelector") ?? undefined,
    limit: integerOf(query, "limit"),
    continue: token,
    exactVersion: exact ? version : undefined,
    notOlderThan: exact ? undefined : version,
  };
}

function matchCauses(match: string, version: number | undefined, token: string): StatusCause[] {
  const forbid = (why: string): StatusCause => forbiddenField("resourceVersionMatch", why);
  const causes: StatusCause[] = [];
  if (version === undefined)
    causes.push(forbid("resourceVersionMatch is forbidden unless resourceVersion is provided"));
  if (token !== "") causes.push(forbid("resourceVersionMatch is forbidden when continue is provided"));
  if (match !== "Exact" && match !== "NotOlderThan") {
    causes.push(unsupportedValue("resourceVersionMatch", match, ["Exact", "NotOlderThan", ""]));
  }
  if (match === "Exact" && version === 0) {
    causes.push(forbid('resourceVersionMatch "exact" is forbidden for resourceVersion "0"'));
  }
  return causes;
}

export interface WatchWish {
  readonly start: WatchStart;
  readonly labelSelector: string | undefined;
  readonly fieldSelector: string | undefined;
  readonly timeoutSeconds: number | undefined;
  readonly bookmarks: boolean;
  /** A bookmark marks the end of what was there at the start: the watch stands for a list as well. */
  readonly marksListEnd: boolean;
}

/** Reads the options of a watch. Version 0 or none begins with what is there now, unless the caller wants none of that. */
export function watchWishOf(query: URLSearchParams): WatchWish {
  const initial = query.get("sendInitialEvents") ?? "";
  assertInitialEventsAskedWell(initial, query.get("resourceVersionMatch") ?? "");
  const version = versionOf(query);
  const wantsInitial = initial === "" ? version === undefined || version === 0 : isTrue(initial);
  const bookmarks = isTrue(query.get("allowWatchBookmarks"));
  return {
    start: wantsInitial
      ? { t: "now", notOlderThan: version ?? 0 }
      : version === undefined || version === 0
        ? { t: "newest" }
        : { t: "after", rv: version },
    labelSelector: query.get("labelSelector") ?? undefined,
    fieldSelector: query.get("fieldSelector") ?? undefined,
    timeoutSeconds: integerOf(query, "timeoutSeconds"),
    bookmarks,
    marksListEnd: isTrue(initial) && bookmarks,
  };
}

function assertInitialEventsAskedWell(initial: string, match: string): void {
  const forbid = (why: string): StatusCause => forbiddenField("resourceVersionMatch", why);
  const causes: StatusCause[] = [];
  if (initial !== "" && match !== "NotOlderThan") {
    causes.push(forbid("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"));
  }
  if (match !== "" && initial === "") {
    causes.push(forbid("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"));
  }
  if (match !== "" && match !== "NotOlderThan") {
    causes.push(unsupportedValue("resourceVersionMatch", match, ["NotOlderThan"]));
  }
  if (causes.length > 0) throw invalidOptions("ListOptions", causes);
}

/** Throws 504 for a version that this server has not reached. */
export function assertReached(registry: { readonly revision: number }, query: URLSearchParams): void {
  const version = versionOf(query) ?? 0;
  if (version > registry.revision) throw tooLargeResourceVersion(version, registry.revision);
}

export function isWatch(query: URLSearchParams): boolean {
  return isTrue(query.get("watch"));
}

/** Reads the options of a delete from its query and its body; the body wins. */
export function deleteWishOf(query: URLSearchParams, body: unknown): DeleteWish {
  if (body !== undefined && !isObject(body)) throw badRequest("the request body is not DeleteOptions");
  const options = body ?? {};
  assertDeleteOptions(options);
  const grace = options.gracePeriodSeconds ?? integerOf(query, "gracePeriodSeconds");
  if (grace !== undefined && grace !== null && (typeof grace !== "number" || !Number.isSafeInteger(grace))) {
    throw wrongMember("gracePeriodSeconds", grace, "int64");
  }
  const isSaid = (value: unknown): boolean => value !== undefined && value !== null;
  if (isSaid(options.orphanDependents) && isSaid(options.propagationPolicy)) {
    const why = "orphanDependents and deletionPropagation cannot be both set";
    const message = `Invalid value: ${JSON.stringify(options.propagationPolicy)}: ${why}`;
    throw invalidOptions("DeleteOptions", [{ reason: "FieldValueInvalid", message, field: "propagationPolicy" }]);
  }
  const policy =
    orphanPolicy(options.orphanDependents) ?? readPolicy(options.propagationPolicy ?? query.get("propagationPolicy"));
  const preconditions = readPreconditions(options.preconditions);
  return {
    ...(typeof grace === "number" ? { gracePeriodSeconds: grace } : {}),
    ...(policy === undefined ? {} : { propagationPolicy: policy }),
    ...(preconditions === undefined ? {} : { preconditions }),
  };
}

/** Whatever else was sent (the object itself, say) is not what a delete means. */
function assertDeleteOptions({ kind = "", apiVersion = "" }: JsonObject): void {
  if (kind === "" || kind === "DeleteOptions") return;
  throw badRequest(`no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)}`);
}

/** Tells whether a request is to be tried only: by its query or, of a delete, by the options in its body. */
export function isDryRun(
  request: { readonly query: URLSearchParams; readonly method: string },
  options?: unknown,
): boolean {
  const asked: unknown[] = [...request.query.getAll("dryRun"), ...dryRunIn(options)];
  const wrong = asked.filter((value) => value !== "All");
  if (wrong.length > 0) throw invalidOptions(optionsKind(request.method), [unsupportedValue("dryRun", wrong, ["All"])]);
  return asked.length > 0;
}

/** What is no list of texts is refused: to take it for nothing would do what the caller only wanted to try. */
function dryRunIn(options: unknown): unknown[] {
  const dryRun = isObject(options) ? (options.dryRun ?? []) : [];
  if (!Array.isArray(dryRun)) throw wrongMember("dryRun", dryRun, "[]string");
  const odd = dryRun.find((value) => typeof value !== "string");
  if (odd !== undefined) throw wrongMember("dryRun", odd, "string");
  return dryRun;
}

/** What the options of a writing method are called. */
export function optionsKind(method: string): string {
  return { POST: "CreateOptions", PUT: "UpdateOptions", PATCH: "PatchOptions" }[method] ?? "DeleteOptions";
}

const wrongMember = (member: string, value: unknown, goType: string) =>
  badRequest(
    `json: cannot unmarshal ${goKindOf(value)} into Go struct field DeleteOptions.${member} of type ${goType}`,
  );

/** What was said before there were policies. */
function orphanPolicy(value: unknown): DeleteWish["propagationPolicy"] {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "boolean") throw wrongMember("orphanDependents", value, "bool");
  return value ? "Orphan" : "Background";
}

function readPolicy(value: unknown): DeleteWish["propagationPolicy"] {
  if (value === undefined || value === null || value === "") return undefined;
  if (value === "Background" || value === "Foreground" || value === "Orphan") return value;
  throw invalidOptions("DeleteOptions", [
    unsupportedValue("propagationPolicy", value, ["Foreground", "Background", "Orphan", "nil"]),
  ]);
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
  if (Number.isSafeInteger(version)) return version;
  const why = `resourceVersion: Invalid value: ${JSON.stringify(text)}: ${cannotParse("Uint", text)}`;
  throw isWatch(query) ? unforeseen(why) : badRequest(`invalid resource version: ${why}`);
}

const cannotParse = (type: "Uint" | "Int", text: string): string =>
  `strconv.Parse${type}: parsing ${JSON.stringify(text)}: invalid syntax`;

export function integerOf(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null || text === "") return undefined;
  const number = /^-?\d+$/u.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(number)) throw badRequest(cannotParse("Int", text));
  return number;
}

export function isTrue(text: string | null): boolean {
  return text === "true" || text === "1";
}
