import { notAcceptable } from "../refusals.ts";
import type { ListHead } from "../registry/list-page.ts";
import { parse } from "../registry/object-text.ts";
import type { ResourceType } from "../resource-types.ts";
import type { ApiRequest } from "./api-request.ts";
import { type ListBody, listBody, listMetadata, objectList } from "./list-body.ts";
import { includeObjectOf, tableList, tableOfObject } from "./table.ts";

/** What a caller asks to be shown of objects: themselves, a table, or their metadata alone. */
export type View = "object" | "table" | "metadata";

/** The first form in the Accept header that is served. Throws 406 where there is none. */
export function viewOf(accept: string): View {
  if (accept.trim() === "") return "object";
  for (const choice of accept.split(",")) {
    const [type = "", ...rest] = choice.split(";").map((part) => part.trim().toLowerCase());
    if (type !== "application/json" && type !== "application/*" && type !== "*/*") continue;
    const as = parameter(rest, "as");
    if (as === undefined) return "object";
    if (parameter(rest, "g") !== "meta.k8s.io" || parameter(rest, "v") !== "v1") continue;
    if (as === "table") return "table";
    if (as === "partialobjectmetadata" || as === "partialobjectmetadatalist") return "metadata";
  }
  throw notAcceptable();
}

/** Turns an object's JSON text into what the caller asked to see. */
export function presenter(type: ResourceType, request: ApiRequest, now: () => Date): (body: string) => string {
  const view = viewOf(request.accept);
  if (view === "object") return (body) => body;
  if (view === "metadata") return (body) => JSON.stringify(metadataOf(body));
  const include = includeObjectOf(request.query);
  return (body) => JSON.stringify(tableOfObject(type, body, include, now()));
}

/** Turns a page into what the caller asked to see. */
export function presentPage(type: ResourceType, page: ListHead, request: ApiRequest, now: () => Date): ListBody {
  const view = viewOf(request.accept);
  if (view === "object") return objectList(type, page);
  if (view === "table") return tableList(type, page, includeObjectOf(request.query), now());
  const kind = { kind: "PartialObjectMetadataList", apiVersion: "meta.k8s.io/v1" };
  const members = { ...kind, metadata: listMetadata(page) };
  return listBody(members, "items", (body) => JSON.stringify(metadataOf(body)));
}

function metadataOf(body: string): unknown {
  return { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata: parse(body).metadata };
}

function parameter(parts: readonly string[], name: string): string | undefined {
  return parts.find((part) => part.startsWith(`${name}=`))?.slice(name.length + 1);
}
