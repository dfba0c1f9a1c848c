import http, { type IncomingHttpHeaders, type IncomingMessage, type OutgoingHttpHeaders } from "node:http";
import https, { type RequestOptions } from "node:https";
import { type Clock, orAborted } from "@holdfast/async";
import type { KubeConfig } from "@kubernetes/client-node";
import { type ApiAnswer, apiAnswerOf } from "./api-answer.ts";
import { Connections } from "./connections.ts";
import { NoAnswer } from "./no-answer.ts";

/** A request to the API server, as its path below the server's address. */
export interface ApiRequest {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  readonly path: string;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly body?: { readonly type: string; readonly json: unknown };
}

/** An answer whose body is still coming: iterating it reads the body, and leaving the iteration ends it. */
export interface ApiStream extends AsyncIterable<Uint8Array> {
  readonly statusCode?: number | undefined;
  readonly headers: IncomingHttpHeaders;
}

/**
 * How requests reach an API server. Each is sent once; what is known of one that failed is in the NoAnswer that it rejects with, also
 * when the signal aborts.
 */
export interface ApiTransport {
  /** The whole answer, whatever its status. */
  send(request: ApiRequest, signal: AbortSignal): Promise<ApiAnswer>;
  /** The answer's head; its body is the caller's. `keepAliveMs`: probes the connection where there is one. */
  stream(request: ApiRequest, signal: AbortSignal, keepAliveMs?: number): Promise<ApiStream>;
  /** Ends everything. What was in flight has no answer. */
  close(): void;
}

/** The most bytes of one answer. */
const answerMaxBytes = 64 * 1024 * 1024;

/**
 * Sends single requests with the kubeconfig's credentials and TLS, and says of each failure whether anything was sent. It retries
 * nothing and follows no redirect.
 */
export class Transport implements ApiTransport {
  readonly #config: KubeConfig;
  readonly #server: URL;
  readonly #clock: Clock;
  readonly #connections = new Connections();
  readonly #open = new Set<http.ClientRequest>();
  #closed = false;

  constructor(config: KubeConfig, clock: Clock) {
    this.#config = config;
    this.#clock = clock;
    this.#server = new URL(config.getCurrentCluster()?.server ?? "");
  }

  /** The whole answer, whatever its status. Rejects with NoAnswer, also when the signal aborts. */
  async send(request: ApiRequest, signal: AbortSignal): Promise<ApiAnswer> {
    const response = await this.stream(request, signal);
    const text = await readText(response, signal);
    return apiAnswerOf(response.statusCode ?? 0, response.headers, text, this.#clock.now());
  }

  /** The answer's head; its body is the caller's to read or destroy. Aborting the signal also ends the body. */
  async stream(request: ApiRequest, signal: AbortSignal, keepAliveMs?: number): Promise<IncomingMessage> {
    const options: RequestOptions = {};
    try {
      signal.throwIfAborted();
      // A credential plugin may hang: it is not waited for beyond the signal.
      await orAborted(this.#config.applyToHTTPSOptions(options), signal);
    } catch (error) {
      throw noAnswer(false, error);
    }
    if (this.#closed) throw noAnswer(false, new Error("the client is closed"));
    const response = await this.#sendHead(request, options, signal);
    if (keepAliveMs !== undefined) response.socket.setKeepAlive(true, keepAliveMs);
    return response;
  }

  /** Destroys every connection. What was in flight has no answer. */
  close(): void {
    this.#closed = true;
    for (const open of this.#open) open.destroy(new Error("the client is closed"));
    this.#connections.close();
  }

  #sendHead(request: ApiRequest, credentials: RequestOptions, signal: AbortSignal): Promise<IncomingMessage> {
    const secure = this.#server.protocol === "https:";
    const proxied = Boolean(this.#config.getCurrentCluster()?.proxyUrl);
    const body = request.body === undefined ? undefined : Buffer.from(JSON.stringify(request.body.json));
    const sending = (secure ? https : http).request({
      hostname: this.#server.hostname.replace(/^\[(.*)\]$/, "$1"),
      port: this.#server.port === "" ? (secure ? 443 : 80) : this.#server.port,
      path: this.#pathOf(request),
      method: request.method,
      headers: headersOf(request, credentials, body),
      agent: proxied ? credentials.agent : this.#connections.agentFor(secure, credentials),
      ...(credentials.auth ? { auth: credentials.auth } : {}),
    });
    this.#open.add(sending);

    // Bytes are held back until the connection stands, so that what fails before it was provably not sent. (After it nothing is
    // proved, a failed TLS handshake included.)
    let sent = false;
    sending.on("socket", (socket) => {
      if (!socket.connecting) sent = true;
      else socket.once("connect", () => (sent = true));
    });
    return new Promise((resolve, reject) => {
      const onAbort = (): void => void sending.destroy(signal.reason instanceof Error ? signal.reason : undefined);
      signal.addEventListener("abort", onAbort, { once: true });
      sending.on("response", resolve);
      sending.on("error", (error) => reject(noAnswer(sent, signal.aborted ? signal.reason : error)));
      sending.on("close", () => {
        this.#open.delete(sending);
        signal.removeEventListener("abort", onAbort);
        reject(noAnswer(sent, signal.aborted ? signal.reason : new Error("the connection closed without an answer")));
      });
      // It may have aborted while the credentials were on their way here, and says so only once.
      if (signal.aborted) onAbort();
      else sending.end(body);
    });
  }

  #pathOf(request: ApiRequest): string {
    const query = new URLSearchParams();
    for (const [key, value] of Object.entries(request.query ?? {})) {
      if (value !== undefined) query.set(key, value);
    }
    const base = this.#server.pathname.replace(/\/$/, "");
    return `${base}${request.path}${query.size === 0 ? "" : `?${query}`}`;
  }
}

function headersOf(request: ApiRequest, credentials: RequestOptions, body: Buffer | undefined): OutgoingHttpHeaders {
  return {
    Accept: "application/json",
    "User-Agent": "holdfast",
    ...(body && request.body ? { "Content-Type": request.body.type, "Content-Length": body.length } : {}),
    ...(credentials.headers as OutgoingHttpHeaders | undefined),
  };
}

function noAnswer(sent: boolean, cause: unknown): NoAnswer {
  const why = cause instanceof Error ? cause.message || cause.name : String(cause);
  return new NoAnswer(sent, why, cause);
}

/** The answer's body as text. Rejects with NoAnswer when it breaks off. */
export async function readText(response: ApiStream, signal: AbortSignal): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const chunk of response) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > answerMaxBytes) throw new Error(`the answer is larger than ${answerMaxBytes} bytes`);
    }
    return Buffer.concat(chunks).toString("utf8");
  } catch (error) {
    throw noAnswer(true, signal.aborted ? signal.reason : error);
  }
}
