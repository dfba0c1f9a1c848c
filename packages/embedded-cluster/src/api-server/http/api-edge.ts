import type { IncomingMessage, ServerResponse } from "node:http";
import type { Logger } from "pino";
import { ApiStatusError } from "../../api-status-error.ts";
import type { Fate } from "../../faults/fate.ts";
import { timedOut } from "../../faults/fate.ts";
import type { FaultPlan } from "../../faults/fault-plan.ts";
import type { FaultedRequest, Loss } from "../../faults/fault-rule.ts";
import { landLater } from "../../faults/faulty-api.ts";
import {
  badRequest,
  impersonationNotServed,
  NotServedPage,
  notServed,
  tooManyLargeLists,
  unauthorized,
} from "../refusals.ts";
import type { Registry } from "../registry/registry.ts";
import type { ApiRequest } from "./api-request.ts";
import { type FaultConsole, faultsPath, isFaultsPath } from "./fault-console.ts";
import { faultedRequestOf } from "./faulted-request.ts";
import { type Answer, handle } from "./handlers.ts";
import { type ListAnswer, streamList } from "./list-stream.ts";
import type { ReadLog } from "./log-handler.ts";
import { type Reply, refusalOf, refusalReply, textReply } from "./reply.ts";
import { mediaTypeOf, readBody } from "./request-body.ts";
import { routeOf } from "./route.ts";
import { streamWatch } from "./watch-stream.ts";

const largeListsMax = 32;

export interface ApiEdgeOptions {
  readonly registry: Registry;
  /** Tells whether a bearer token is the one there is. */
  readonly isToken: (token: string) => boolean;
  readonly log: Logger;
  readonly now: () => Date;
  /** How often a watch that asked for bookmarks is given one; undefined: never by itself. */
  readonly bookmarkIntervalMs: number | undefined;
  readonly faults: FaultPlan;
  readonly readLog?: ReadLog | undefined;
  /** Serves the fault knobs over HTTP where the operator has allowed it. */
  readonly faultConsole: FaultConsole | undefined;
}

/** The HTTP edge, whatever carries it: authentication, faults, and the writing of replies. */
export class ApiEdge {
  readonly #options: ApiEdgeOptions;
  readonly #stopping = new AbortController();
  readonly #bookmarkListeners = new Set<() => void>();
  /** Large lists that are being written. */
  #lists = 0;
  /** Runs while there is a watch to be given bookmarks. */
  #bookmarkTimer: NodeJS.Timeout | undefined;

  constructor(options: ApiEdgeOptions) {
    this.#options = options;
  }

  /** Ends every watch. */
  stop(): void {
    this.#stopping.abort();
  }

  /** Serves one request; `by` is the caller's name for fault rules. Never rejects. */
  async serve(message: IncomingMessage, response: ServerResponse, by: string): Promise<void> {
    response.on("error", (error) => this.#options.log.debug({ err: error.message }, "reply could not be written"));
    try {
      await this.#answer(message, response, by);
    } catch (error) {
      // The caller left while its request was read, or a stream had begun: there is nobody to refuse.
      if (response.headersSent || (!message.complete && message.destroyed && !(error instanceof ApiStatusError))) {
        response.destroy();
        return;
      }
      this.#refuse(message, response, error);
    }
  }

  async #answer(message: IncomingMessage, response: ServerResponse, by: string): Promise<void> {
    if (!this.#isAuthorized(message)) throw unauthorized();
    if (message.headers["impersonate-user"] !== undefined) throw impersonationNotServed();
    const request = await readRequest(message);
    const fromConsole = this.#options.faultConsole?.answer(request);
    if (fromConsole !== undefined) return this.#write(message, response, await fromConsole);
    if (isFaultsPath(request.path)) throw notServed(`${faultsPath} without --allow-faults`);
    const route = routeOf(request.path);
    const { faults } = this.#options;
    const faulted = faultedRequestOf(route, request, by);
    const fate = faulted === undefined ? undefined : faults.decide(faulted);
    const work = async (): Promise<Answer> => handle(this.#options, route, request);
    if (fate !== undefined) return this.#carryOut(await fate, message, response, work, faulted);
    return this.#deliver(message, response, await work(), faulted);
  }

  /** Gives a request its fate. `work` is done at most once. */
  async #carryOut(
    fate: Fate,
    message: IncomingMessage,
    response: ServerResponse,
    work: () => Promise<Answer>,
    faulted: FaultedRequest | undefined,
  ): Promise<void> {
    switch (fate.t) {
      case "continue":
        return this.#deliver(message, response, await work(), faulted);
      case "fail":
        throw fate.error;
      case "dropUnapplied":
        return this.#leaveUnanswered(message, response, fate.loss);
      case "applyThenDrop":
        discard(await tried(work));
        return this.#leaveUnanswered(message, response, fate.loss);
      case "applyLate":
        void landLater(fate.later, async () => discard(await work()));
        return this.#leaveUnanswered(message, response, fate.loss);
    }
  }

  async #deliver(
    message: IncomingMessage,
    response: ServerResponse,
    answer: Answer,
    faulted: FaultedRequest | undefined,
  ): Promise<void> {
    if ("page" in answer) return this.#streamList(answer, response);
    if (!("cursor" in answer)) return this.#write(message, response, answer);
    const faults = faulted === undefined ? {} : { faults: this.#options.faults.openWatch(faulted) };
    const onBookmarkTime = (listener: () => void): (() => void) => this.#onBookmarkTime(listener);
    await streamWatch(answer, { response, onBookmarkTime, stopping: this.#stopping.signal, ...faults });
  }

  /** So many at once, for each has an object or two in memory. */
  async #streamList(answer: ListAnswer, response: ServerResponse): Promise<void> {
    if (this.#lists >= largeListsMax) throw tooManyLargeLists(largeListsMax);
    this.#lists += 1;
    try {
      await streamList(answer, response);
    } finally {
      this.#lists -= 1;
    }
  }

  #onBookmarkTime(listener: () => void): () => void {
    this.#bookmarkListeners.add(listener);
    const { bookmarkIntervalMs } = this.#options;
    if (bookmarkIntervalMs !== undefined) {
      this.#bookmarkTimer ??= setInterval(() => {
        for (const one of this.#bookmarkListeners) one();
      }, bookmarkIntervalMs);
    }
    return () => {
      this.#bookmarkListeners.delete(listener);
      if (this.#bookmarkListeners.size > 0) return;
      clearInterval(this.#bookmarkTimer);
      this.#bookmarkTimer = undefined;
    };
  }

  #leaveUnanswered(message: IncomingMessage, response: ServerResponse, loss: Loss): void {
    if (loss === "cut") response.destroy();
    else if (loss === "timeout") this.#refuse(message, response, timedOut());
    // Silence: the socket stays as it is until the caller or the server ends it.
  }

  #refuse(message: IncomingMessage, response: ServerResponse, error: unknown): void {
    const refusal = refusalOf(error);
    if (refusal.code >= 500) this.#options.log.warn({ err: error, url: message.url }, "request failed");
    const page = error instanceof NotServedPage ? textReply(404, error.page) : undefined;
    this.#write(message, response, page ?? refusalReply(refusal.status));
  }

  #write(message: IncomingMessage, response: ServerResponse, reply: Reply): void {
    // A body that was refused unread would be taken for the next request.
    if (!message.complete) response.setHeader("connection", "close");
    for (const [name, value] of Object.entries(reply.headers ?? {})) response.setHeader(name, value);
    response.writeHead(reply.code, {
      "content-type": reply.contentType,
      "content-length": Buffer.byteLength(reply.body),
      "cache-control": "no-cache, private",
    });
    response.end(reply.body);
    this.#options.log.trace({ method: message.method, url: message.url, code: reply.code }, "served");
  }

  #isAuthorized(message: IncomingMessage): boolean {
    const match = /^Bearer +(\S+)$/iu.exec(message.headers.authorization ?? "");
    return match?.[1] !== undefined && this.#options.isToken(match[1]);
  }
}

async function readRequest(message: IncomingMessage): Promise<ApiRequest> {
  const { path, query } = splitTarget(message.url ?? "/");
  const method = message.method ?? "";
  const bytes = method === "GET" ? Buffer.alloc(0) : await readBody(message);
  return {
    method,
    path,
    query,
    accept: message.headers.accept ?? "",
    contentType: mediaTypeOf(message),
    body: bytes.toString("utf8"),
    bytes,
  };
}

/** The path stays as it was sent: a URL would resolve `..` in it, and the request would be about something else. */
function splitTarget(target: string): { path: string; query: URLSearchParams } {
  const own = target.replace(/^https?:\/\/[^/?#]*/iu, "");
  if (!own.startsWith("/")) throw badRequest("the request target cannot be read");
  const end = own.indexOf("?");
  return end < 0
    ? { path: own, query: new URLSearchParams() }
    : { path: own.slice(0, end), query: new URLSearchParams(own.slice(end + 1)) };
}

/** A refusal is lost like any other answer. */
async function tried(work: () => Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ApiStatusError) return undefined;
    throw error;
  }
}

/** A watch that nobody will read holds its place in the log no longer. */
function discard(answer: Answer | undefined): void {
  if (answer !== undefined && "cursor" in answer) answer.cursor.close();
}
