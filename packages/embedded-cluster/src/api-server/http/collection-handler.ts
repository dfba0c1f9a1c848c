import { badRequest } from "../refusals.ts";
import type { ApiRequest } from "./api-request.ts";
import { findUnknown, refuseUnknown, withWarnings } from "./field-validation.ts";
import type { Answer, HandlerContext } from "./handlers.ts";
import { objectList, wholeText } from "./list-body.ts";
import { listAnswer } from "./list-stream.ts";
import { presenter, presentPage } from "./presenting.ts";
import { deleteWishOf, isDryRun, isWatch, listWishOf } from "./query.ts";
import { textOfJsonReply } from "./reply.ts";
import { parseObject, parseOptional } from "./request-body.ts";
import { type Route, refuseMethod } from "./route.ts";
import { watchAnswer } from "./watch-answer.ts";

/** Answers a request for a collection: list and watch, create, deletecollection. */
export function handleCollection(
  context: HandlerContext,
  route: Extract<Route, { t: "collection" }>,
  request: ApiRequest,
): Answer {
  const { registry, now } = context;
  const { type, namespace } = route;
  if (request.method === "GET") {
    if (isWatch(request.query)) return watchAnswer(context, type, namespace, request);
    const page = registry.list(type, namespace, listWishOf(request.query));
    return listAnswer(page, presentPage(type, page, request, now));
  }
  if (request.method === "PUT" && type.custom) throw badRequest("name must be provided");
  if (type.namespaced && namespace === undefined) return refuseMethod();
  if (request.method === "POST") {
    const present = presenter(type, request, now);
    const body = parseObject(request, type.kind);
    const findings = findUnknown(type, request, body);
    refuseUnknown(type, findings);
    const created = registry.inRun(isDryRun(request), () => registry.create(type, namespace ?? "", body));
    return withWarnings(textOfJsonReply(201, present(JSON.stringify(created))), findings);
  }
  if (request.method === "DELETE" && type.deletesCollections !== false) {
    const options = parseOptional(request);
    const wish = deleteWishOf(request.query, options);
    const selection = listWishOf(request.query);
    const deleted = registry.inRun(isDryRun(request, options), () =>
      registry.deleteCollection(type, namespace, selection, wish),
    );
    const head = { resourceVersion: registry.revision, continue: undefined, remaining: undefined };
    const bodies = deleted.map((object) => JSON.stringify(object));
    return textOfJsonReply(200, wholeText(objectList(type, head), bodies));
  }
  return refuseMethod();
}
