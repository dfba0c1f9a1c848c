import type { KubeObject, PatchType } from "../../resource-api.ts";
import { strategicMergeNotServed, unsupportedMediaType } from "../refusals.ts";
import { parsePatch, patchTypes } from "../registry/patches.ts";
import type { Target } from "../registry/target.ts";
import type { ResourceType } from "../resource-types.ts";
import type { ApiRequest } from "./api-request.ts";
import { findUnknown, nothingFound, refuseUnknown, refuseUnknownInPatched, withWarnings } from "./field-validation.ts";
import type { Answer, HandlerContext } from "./handlers.ts";
import { presenter } from "./presenting.ts";
import { assertReached, deleteWishOf, isDryRun } from "./query.ts";
import { jsonReply, type Reply, textOfJsonReply } from "./reply.ts";
import { parseObject, parseOptional } from "./request-body.ts";
import { type Route, refuseMethod } from "./route.ts";

type ObjectRoute = Extract<Route, { t: "object" }>;

/** Answers a request for one object or its status: get and watch, update, patch, delete. */
export function handleObject(context: HandlerContext, route: ObjectRoute, request: ApiRequest): Answer {
  const { registry } = context;
  const { type, namespace, name, subresource } = route;
  const target: Target = { type, namespace, name };
  const present = presenter(type, request, context.now);
  switch (request.method) {
    case "GET":
      // Also with watch=true: one object is watched by a field selector on its collection.
      assertReached(registry, request.query);
      return textOfJsonReply(200, present(JSON.stringify(registry.get(target))));
    case "PUT": {
      const body = parseObject(request, type.kind);
      const findings = findUnknown(type, request, body);
      refuseUnknown(type, findings);
      const updated = registry.inRun(isDryRun(request), () => registry.update(target, body, subresource));
      return withWarnings(textOfJsonReply(200, present(JSON.stringify(updated))), findings);
    }
    case "PATCH":
      return patch(context, target, subresource, request);
    case "DELETE": {
      if (subresource !== undefined) return refuseMethod();
      const options = parseOptional(request);
      const wish = deleteWishOf(request.query, options);
      const { object, removed } = registry.inRun(isDryRun(request, options), () => registry.delete(target, wish));
      if (removed && !type.returnsDeleted) return jsonReply(200, deletedStatus(type, object));
      return textOfJsonReply(200, present(JSON.stringify(object)));
    }
    default:
      return refuseMethod();
  }
}

function patch(context: HandlerContext, target: Target, subresource: "status" | undefined, request: ApiRequest): Reply {
  const { registry } = context;
  const { type } = target;
  const present = presenter(type, request, context.now);
  const patchType = patchTypeOf(type, request);
  const body = parsePatch(request.body);
  let findings = nothingFound;
  const inspect = (patched: unknown): void => {
    findings = findUnknown(type, request, patched);
    refuseUnknownInPatched(patched, findings);
  };
  const object = registry.inRun(isDryRun(request), () => registry.patch(target, patchType, body, subresource, inspect));
  return withWarnings(textOfJsonReply(200, present(JSON.stringify(object))), findings);
}

function patchTypeOf(type: ResourceType, request: ApiRequest): PatchType {
  const sent = request.contentType;
  const found = patchTypes.find((known) => known === sent);
  if (found !== undefined) return found;
  if (sent === "application/strategic-merge-patch+json" && !type.custom) throw strategicMergeNotServed(patchTypes);
  throw unsupportedMediaType(patchTypes);
}

function deletedStatus(type: ResourceType, object: KubeObject): unknown {
  const { name, uid } = object.metadata;
  return {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Success",
    details: { name, ...(type.group === "" ? {} : { group: type.group }), kind: type.plural, uid },
  };
}
