import type { IncomingMessage, ServerResponse } from "node:http";
import type { KubeObject, PatchType } from "../../resource-api.ts";
import { badRequest, unsupportedMediaType } from "../refusals.ts";
import { rulesOf } from "../registry/kinds/kind-rules.ts";
import { patchTypes } from "../registry/patches.ts";
import type { Registry } from "../registry/registry.ts";
import type { Target } from "../registry/target.ts";
import type { ResourceType } from "../resource-types.ts";
import { coreVersions, groupDocument, groupList, resourceList, serverVersion } from "./discovery.ts";
import { listBody } from "./list-body.ts";
import { openApiDocument, openApiRoot } from "./openapi.ts";
import { deleteWishOf, isWatch, listWishOf, refuseDryRun, watchWishOf } from "./query.ts";
import { jsonReply, type Reply, textOfJsonReply } from "./reply.ts";
import { mediaTypeOf, parseJson, parseObject, readBody } from "./request-body.ts";
import { answerReview } from "./reviews.ts";
import { type Route, refuseMethod } from "./route.ts";
import { includeObjectOf, tableOfObject, tableOfPage, wantsTable } from "./table.ts";
import { streamWatch } from "./watch-stream.ts";

/** What the handlers need of the server that they run in. */
export interface HandlerContext {
  readonly registry: Registry;
  readonly isToken: (token: string) => boolean;
  readonly onBookmarkTime: (listener: () => void) => () => void;
  readonly stopping: AbortSignal;
  readonly now: () => Date;
}

/** One authenticated request with its parsed address. */
export interface HandledRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly message: IncomingMessage;
  readonly response: ServerResponse;
}

/** Handles a request and gives its reply; a watch answers by itself and gives none. Throws every refusal. */
export async function handle(
  context: HandlerContext,
  route: Route,
  request: HandledRequest,
): Promise<Reply | undefined> {
  if (route.t === "collection") return handleCollection(context, route, request);
  if (route.t === "object") return handleObject(context, route, request);
  if (route.t === "binding") return handleBinding(context, route, request);
  if (route.t === "review") return handleReview(context, route, request);
  if (request.method !== "GET") return refuseMethod(request.method, request.path);
  return handleDocument(route);
}

type DocumentRoute = Exclude<Route, { t: "collection" } | { t: "object" } | { t: "binding" } | { t: "review" }>;

function handleDocument(route: DocumentRoute): Reply {
  switch (route.t) {
    case "health":
      return { code: 200, contentType: "text/plain; charset=utf-8", body: "ok" };
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

async function handleBinding(
  context: HandlerContext,
  route: Extract<Route, { t: "binding" }>,
  request: HandledRequest,
): Promise<Reply> {
  if (request.method !== "POST") return refuseMethod(request.method, request.path);
  context.registry.bind(route, await readObjectBody(request));
  return jsonReply(201, { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 });
}

async function handleReview(
  context: HandlerContext,
  route: Extract<Route, { t: "review" }>,
  request: HandledRequest,
): Promise<Reply> {
  if (request.method !== "POST") return refuseMethod(request.method, request.path);
  return answerReview(route.kind, await readObjectBody(request), context.isToken);
}

async function handleCollection(
  context: HandlerContext,
  route: Extract<Route, { t: "collection" }>,
  request: HandledRequest,
): Promise<Reply | undefined> {
  const { registry } = context;
  const { type, namespace } = route;
  switch (request.method) {
    case "GET": {
      if (isWatch(request.query)) return watch(context, type, namespace, request);
      const page = registry.list(type, namespace, listWishOf(request.query));
      if (!asksForTable(request)) return textOfJsonReply(200, listBody(type, page));
      return jsonReply(200, tableOfPage(type, page, includeObjectOf(request.query), context.now()));
    }
    case "POST": {
      if (type.namespaced && namespace === undefined) return refuseMethod(request.method, request.path);
      const body = await readObjectBody(request);
      assertFieldsKnown(type, request.query, body);
      return jsonReply(201, registry.create(type, namespace ?? "", body));
    }
    case "DELETE": {
      if (type.namespaced && namespace === undefined) return refuseMethod(request.method, request.path);
      const wish = deleteWishOf(request.query, await readOptionalBody(request));
      const deleted = registry.deleteCollection(type, namespace, listWishOf(request.query), wish);
      const page = { bodies: deleted.map((object) => JSON.stringify(object)), resourceVersion: registry.revision };
      return textOfJsonReply(200, listBody(type, { ...page, continue: undefined, remaining: undefined }));
    }
    default:
      return refuseMethod(request.method, request.path);
  }
}

async function handleObject(
  context: HandlerContext,
  route: Extract<Route, { t: "object" }>,
  request: HandledRequest,
): Promise<Reply | undefined> {
  const { registry } = context;
  const { type, namespace, name, subresource } = route;
  const target: Target = { type, namespace, name };
  switch (request.method) {
    case "GET":
      if (isWatch(request.query)) {
        request.query.set("fieldSelector", `metadata.name=${name}`);
        return watch(context, type, type.namespaced ? namespace : undefined, request);
      }
      return textOfJsonReply(200, presenter(context, type, request)(JSON.stringify(registry.get(target))));
    case "PUT": {
      const body = await readObjectBody(request);
      assertFieldsKnown(type, request.query, body);
      return jsonReply(200, registry.update(target, body, subresource));
    }
    case "PATCH": {
      refuseDryRun(request.query.get("dryRun"));
      const patchType = patchTypeOf(request.message);
      const body = parseJson(await readBody(request.message));
      if (patchType === "application/merge-patch+json") assertFieldsKnown(type, request.query, body);
      return jsonReply(200, registry.patch(target, patchType, body, subresource));
    }
    case "DELETE": {
      if (subresource !== undefined) return refuseMethod(request.method, request.path);
      const wish = deleteWishOf(request.query, await readOptionalBody(request));
      const { object, removed } = registry.delete(target, wish);
      return jsonReply(200, removed && !type.returnsDeleted ? deletedStatus(type, object) : object);
    }
    default:
      return refuseMethod(request.method, request.path);
  }
}

/** As long as the real server lets a watch run when the caller names no time: 30 to 60 minutes. */
function defaultTimeoutSeconds(): number {
  return 1800 + Math.floor(Math.random() * 1800);
}

/** The longest watch served; a caller renews it. */
const maxTimeoutSeconds = 86_400;

async function watch(
  context: HandlerContext,
  type: ResourceType,
  namespace: string | undefined,
  request: HandledRequest,
): Promise<undefined> {
  const wish = watchWishOf(request.query);
  const asked =
    wish.timeoutSeconds === undefined || wish.timeoutSeconds <= 0 ? defaultTimeoutSeconds() : wish.timeoutSeconds;
  await streamWatch({
    type,
    cursor: context.registry.watch(type, namespace, wish.start, wish),
    response: request.response,
    timeoutMs: Math.min(asked, maxTimeoutSeconds) * 1000,
    bookmarks: wish.bookmarks,
    present: presenter(context, type, request),
    onBookmarkTime: context.onBookmarkTime,
    stopping: context.stopping,
  });
}

const asksForTable = (request: HandledRequest): boolean => wantsTable(request.message.headers.accept);

/** Turns an object's JSON text into what the caller wants to see: itself, or a table of one row. */
function presenter(context: HandlerContext, type: ResourceType, request: HandledRequest): (body: string) => string {
  if (!asksForTable(request)) return (body) => body;
  const include = includeObjectOf(request.query);
  return (body) => JSON.stringify(tableOfObject(type, body, include, context.now()));
}

/** Where the caller asks for strictness, throws 400 naming members that would otherwise be dropped in silence. */
function assertFieldsKnown(type: ResourceType, query: URLSearchParams, body: unknown): void {
  if (query.get("fieldValidation") !== "Strict") return;
  const unknown = rulesOf(type).unknownFields?.(body) ?? [];
  if (unknown.length === 0) return;
  const list = unknown.map((field) => `unknown field ${JSON.stringify(field)}`).join(", ");
  const { kind, version } = type;
  throw badRequest(`${kind} in version "${version}" cannot be handled as a ${kind}: strict decoding error: ${list}`);
}

function patchTypeOf(message: IncomingMessage): PatchType {
  const sent = mediaTypeOf(message);
  const found = patchTypes.find((type) => type === sent);
  if (found === undefined) throw unsupportedMediaType(patchTypes);
  return found;
}

async function readObjectBody(request: HandledRequest): Promise<unknown> {
  refuseDryRun(request.query.get("dryRun"));
  return parseObject(await readBody(request.message), mediaTypeOf(request.message));
}

/** The body of a delete, or undefined where none was sent. */
async function readOptionalBody(request: HandledRequest): Promise<unknown> {
  refuseDryRun(request.query.get("dryRun"));
  const text = await readBody(request.message);
  return text.trim() === "" ? undefined : parseObject(text, mediaTypeOf(request.message));
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
