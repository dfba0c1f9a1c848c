import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { ApiStatusError } from "../../api-status-error.ts";
import type { Credentials } from "../credentials.ts";
import { badRequest, injected, unauthorized } from "../refusals.ts";
import type { Registry } from "../registry/registry.ts";
import { handle } from "./handlers.ts";
import type { Intercept, Verdict } from "./intercept.ts";
import { type Reply, refusalOf, refusalReply } from "./reply.ts";
import { routeOf } from "./route.ts";

export interface ApiListenerOptions {
  readonly registry: Registry;
  readonly credentials: Credentials;
  readonly log: Logger;
  readonly now: () => Date;
  /** How often a watch that asked for bookmarks is given one. */
  readonly bookmarkIntervalMs: number;
  readonly intercept?: Intercept | undefined;
}

/** The HTTPS edge: authentication, fault injection for tests, and the writing of replies. */
export class ApiListener {
  readonly #options: ApiListenerOptions;
  readonly #server: Server;
  readonly #stopping = new AbortController();
  readonly #bookmarkListeners = new Set<() => void>();
  readonly #tokenHash: Buffer;
  #bookmarkTimer: NodeJS.Timeout | undefined;

  constructor(options: ApiListenerOptions) {
    this.#options = options;
    this.#tokenHash = hashOf(options.credentials.token);
    const { key, cert } = options.credentials;
    this.#server = createServer({ key, cert, keepAliveTimeout: 120_000 }, (message, response) => {
      void this.#serve(message, response);
    });
    this.#server.on("error", (error) => options.log.warn({ err: error }, "API server socket failed"));
    this.#server.on("tlsClientError", (error) => options.log.debug({ err: error.message }, "TLS handshake failed"));
  }

  /** Listens on loopback and resolves with the port. Rejects when the port is taken. */
  listen(port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(port, "127.0.0.1", () => {
        this.#server.off("error", reject);
        this.#bookmarkTimer = setInterval(() => {
          for (const listener of this.#bookmarkListeners) listener();
        }, this.#options.bookmarkIntervalMs);
        resolve(portOf(this.#server.address()));
      });
    });
  }

  /** Ends every watch and connection, and stops listening. */
  async stop(): Promise<void> {
    clearInterval(this.#bookmarkTimer);
    this.#stopping.abort();
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeIdleConnections();
    await Promise.race([closed, delay(1_000, undefined, { ref: false })]);
    this.#server.closeAllConnections();
    await closed;
  }

  async #serve(message: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on("error", (error) => this.#options.log.debug({ err: error.message }, "reply could not be written"));
    const verdict: Verdict[] = [];
    let reply: Reply | undefined;
    try {
      reply = await this.#answer(message, response, verdict);
    } catch (error) {
      // The caller left while its request was read, or a stream had begun: there is nobody to refuse.
      if (response.headersSent || (message.destroyed && !(error instanceof ApiStatusError))) {
        response.destroy();
        return;
      }
      const refusal = refusalOf(error);
      if (refusal.code >= 500) this.#options.log.warn({ err: error, url: message.url }, "request failed");
      reply = refusalReply(refusal.status);
    }
    if (verdict[0]?.t === "applyThenDropReply" || verdict[0]?.t === "dropUnapplied") {
      response.destroy();
      return;
    }
    if (reply !== undefined) this.#write(message, response, reply);
  }

  async #answer(message: IncomingMessage, response: ServerResponse, verdict: Verdict[]): Promise<Reply | undefined> {
    if (!this.#isAuthorized(message)) throw unauthorized();
    const method = message.method ?? "";
    const url = parseUrl(message.url ?? "/");
    const path = url.pathname;
    const query = url.searchParams;
    if (this.#options.intercept !== undefined) {
      const fate = await this.#options.intercept({ method, path, query });
      verdict.push(fate);
      if (fate.t === "fail") throw injected(fate.code, fate.reason, fate.message);
      if (fate.t === "dropUnapplied") return undefined;
      if (fate.t === "delay") await delay(fate.ms);
    }
    return handle(
      {
        registry: this.#options.registry,
        isToken: (token) => this.#isToken(token),
        onBookmarkTime: (listener) => {
          this.#bookmarkListeners.add(listener);
          return () => this.#bookmarkListeners.delete(listener);
        },
        stopping: this.#stopping.signal,
        now: this.#options.now,
      },
      routeOf(path),
      { method, path, query, message, response },
    );
  }

  #write(message: IncomingMessage, response: ServerResponse, reply: Reply): void {
    // A body that was refused unread would be taken for the next request.
    if (!message.complete) response.setHeader("connection", "close");
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
    return match?.[1] !== undefined && this.#isToken(match[1]);
  }

  /** Compares digests of equal length, in a time that does not depend on the token sent. */
  #isToken(token: string): boolean {
    return timingSafeEqual(hashOf(token), this.#tokenHash);
  }
}

function hashOf(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}

function parseUrl(target: string): URL {
  try {
    return new URL(target, "https://127.0.0.1");
  } catch {
    throw badRequest("the request target cannot be read");
  }
}

function portOf(address: AddressInfo | string | null): number {
  if (address === null || typeof address === "string") throw new Error("The API server has no TCP address.");
  return address.port;
}
