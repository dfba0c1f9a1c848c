import type { Registry } from "../registry/registry.ts";
import type { ApiRequest } from "./api-request.ts";
import { handleCollection } from "./collection-handler.ts";
import { coreVersions, groupDocument, groupList, resourceList, serverVersion } from "./discovery.ts";
import { handleEviction } from "./eviction-handler.ts";
import type { ListAnswer } from "./list-stream.ts";
import { handleLog, type ReadLog } from "./log-handler.ts";
import { handleObject } from "./object-handler.ts";
import { openApiDocument, openApiRoot } from "./openapi.ts";
import { isDryRun } from "./query.ts";
import { jsonReply, type Reply, textReply } from "./reply.ts";
import { parseObject } from "./request-body.ts";
import { answerReview } from "./reviews.ts";
import { type Route, refuseMethod } from "./route.ts";
import type { WatchAnswer } from "./watch-stream.ts";

/** What the handlers need of the server that they run in. */
export interface HandlerContext {
  readonly registry: Registry;
  readonly isToken: (token: string) => boolean;
  readonly now: () => Date;
  /** Absent where no node keeps logs. */
  readonly readLog?: ReadLog | undefined;
}

/** What a request comes to: a reply, or a watch or a large list to stream. */
export type Answer = Reply | WatchAnswer | ListAnswer;

/** Handles a request: at once, but for a log, which is read from the node's disk. Throws every refusal. */
export function handle(context: HandlerContext, route: Route, request: ApiRequest): Answer | Promise<Answer> {
  if (route.t === "collection") return handleCollection(context, route, request);
  if (route.t === "object") return handleObject(context, route, request);
  if (route.t === "binding") return handleBinding(context, route, request);
  if (route.t === "eviction") return handleEviction(context.registry, route, request, context.now());
  if (route.t === "log") return handleLog(context, route, request);
  if (route.t === "review") {
    if (request.method !== "POST") return refuseMethod();
    return answerReview(route.review, parseObject(request), context.isToken, context.now());
  }
  if (request.method !== "GET") return refuseMethod();
  return handleDocument(route);
}

type DocumentRoute = Exclude<
  Route,
  { t: "collection" } | { t: "object" } | { t: "binding" } | { t: "eviction" } | { t: "log" } | { t: "review" }
>;

function handleDocument(route: DocumentRoute): Reply {
  switch (route.t) {
    case "health":
      return textReply(200, "ok");
    case "version":
      return jsonReply(200, serverVersion);
    case "coreVersions":
      return jsonReply(200, coreVersions());
    case "groups":
      return jsonReply(200, groupList());
    case "group":
      return jsonReply(200, groupDocument(route.group));
    case "openApiRoot":
      return jsonReply(200, openApiRoot());
    case "openApi":
      return jsonReply(200, openApiDocument(route.group, route.version));
    case "resources":
      return jsonReply(200, resourceList(route.group, route.version));
  }
}

function handleBinding(
  { registry }: HandlerContext,
  route: Extract<Route, { t: "binding" }>,
  request: ApiRequest,
): Reply {
  if (request.method !== "POST") return refuseMethod();
  const body = parseObject(request);
  registry.inRun(isDryRun(request), () => registry.bind(route, body));
  return jsonReply(201, { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 });
}
