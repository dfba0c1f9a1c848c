import { badRequest, methodNotAllowed, NotServedPage, notFound, notServed } from "../refusals.ts";
import { findType, type ResourceType, resourceTypes } from "../resource-types.ts";
import { type ReviewKindSpec, reviewGroups, reviewKinds } from "./review-kinds.ts";

/** What a path asks for. */
export type Route =
  | { readonly t: "health" }
  | { readonly t: "version" }
  | { readonly t: "coreVersions" }
  | { readonly t: "groups" }
  | { readonly t: "group"; readonly group: string }
  | { readonly t: "openApiRoot" }
  | { readonly t: "openApi"; readonly group: string; readonly version: string }
  | { readonly t: "resources"; readonly group: string; readonly version: string }
  | { readonly t: "collection"; readonly type: ResourceType; readonly namespace: string | undefined }
  | {
      readonly t: "object";
      readonly type: ResourceType;
      readonly namespace: string;
      readonly name: string;
      readonly subresource: "status" | undefined;
    }
  | { readonly t: "binding"; readonly type: ResourceType; readonly namespace: string; readonly name: string }
  | { readonly t: "eviction"; readonly type: ResourceType; readonly namespace: string; readonly name: string }
  | { readonly t: "log"; readonly type: ResourceType; readonly namespace: string; readonly name: string }
  | { readonly t: "review"; readonly review: ReviewKindSpec };

/** Reads a path. Throws 404 by name for anything that is not served. */
export function routeOf(path: string): Route {
  let parts: string[];
  try {
    parts = path
      .split("/")
      .filter((part) => part !== "")
      .map(decodeURIComponent);
  } catch {
    throw notServed(path);
  }
  for (const part of parts) assertName(part, path);
  const [root, ...rest] = parts;
  if (root === "version" && rest.length === 0) return { t: "version" };
  if (root === "readyz" || root === "livez" || root === "healthz") return { t: "health" };
  if (root === "openapi" && rest[0] === "v3") return openApiRoute(rest.slice(1), path);
  if (root === "api") {
    const [version, ...below] = rest;
    if (version === undefined) return { t: "coreVersions" };
    return below.length === 0 ? resources("", version, path) : resourceRoute("", version, below, path);
  }
  if (root === "apis") {
    const [group, version, ...below] = rest;
    if (group === undefined) return { t: "groups" };
    if (version === undefined) return isGroup(group) ? { t: "group", group } : refusePage(path);
    const review = reviewKinds.find((kind) => kind.group === group && version === "v1" && kind.plural === below[0]);
    if (review !== undefined && below.length === 1) return { t: "review", review };
    return below.length === 0 ? resources(group, version, path) : resourceRoute(group, version, below, path);
  }
  return refusePage(path);
}

/** What no object can be called, and what a path would be misread by. */
function assertName(part: string, path: string): void {
  if (part === "." || part === "..") throw badRequest(`Name parameter invalid: "${part}": may not be '${part}'`);
  if (part.includes("/")) throw notServed(path);
}

/** Throws 405. */
export function refuseMethod(): never {
  throw methodNotAllowed();
}

function openApiRoute(below: readonly string[], path: string): Route {
  const [apis, group, version, ...excess] = below;
  if (apis === undefined) return { t: "openApiRoot" };
  if (apis === "api" && group === "v1" && version === undefined) return { t: "openApi", group: "", version: group };
  if (apis !== "apis" || group === undefined || version === undefined || excess.length > 0) return refuse(path);
  return { t: "openApi", group, version };
}

function refuse(path: string): never {
  throw notServed(path);
}

/** Outside of what it knows the real server answers with a page, not with a Status. */
function refusePage(path: string): never {
  throw new NotServedPage(path);
}

function isGroup(group: string): boolean {
  return group !== "" && (reviewGroups.includes(group) || resourceTypes.some((type) => type.group === group));
}

function resources(group: string, version: string, path: string): Route {
  const isReview = version === "v1" && reviewGroups.includes(group);
  const known = isReview || resourceTypes.some((type) => type.group === group && type.version === version);
  if (known) return { t: "resources", group, version };
  return group === "" ? refuse(path) : refusePage(path);
}

function resourceRoute(group: string, version: string, below: string[], path: string): Route {
  const [first, second, third, ...deeper] = below;
  // `namespaces/x/pods` is a collection; `namespaces/x` and `namespaces/x/status` are the namespace itself.
  if (first === "namespaces" && second !== undefined && third !== undefined && third !== "status") {
    const [name, subresource, ...excess] = deeper;
    const type = findType({ group, version, plural: third });
    if (type === undefined || !type.namespaced || excess.length > 0) return refuse(path);
    if (name === undefined) return { t: "collection", type, namespace: second };
    return objectRoute(type, second, name, subresource, path);
  }
  const type = findType({ group, version, plural: first ?? "" });
  if (type === undefined && group !== "") return refusePage(path);
  if (type === undefined || deeper.length > 0) return refuse(path);
  if (second === undefined) return { t: "collection", type, namespace: undefined };
  if (type.namespaced) return refuse(path);
  return objectRoute(type, "", second, third, path);
}

function objectRoute(
  type: ResourceType,
  namespace: string,
  name: string,
  subresource: string | undefined,
  path: string,
): Route {
  if (subresource === undefined) return { t: "object", type, namespace, name, subresource: undefined };
  if (subresource === "binding" && type.kind === "Pod") return { t: "binding", type, namespace, name };
  if (subresource === "eviction" && type.kind === "Pod") return { t: "eviction", type, namespace, name };
  if (subresource === "log" && type.kind === "Pod") return { t: "log", type, namespace, name };
  if (subresource === "status" && !type.hasStatus && type.custom) throw notFound(type, name);
  if (subresource !== "status" || !type.hasStatus) return refuse(path);
  return { t: "object", type, namespace, name, subresource };
}
