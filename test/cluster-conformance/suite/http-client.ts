import { type IncomingMessage, Agent as PlainAgent, request as plainRequest } from "node:http";
import { Agent, request } from "node:https";
import type { Access } from "./access.ts";
import type { Json } from "./json.ts";

/** One raw request. */
export interface RawRequest {
  readonly method: string;
  readonly path: string;
  /** Sent as it is when text, else as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Answer {
  readonly code: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Parsed where it is JSON, else its text. */
  readonly body: Json;
}

/** Raw HTTP to a cluster: nothing is retried, followed, added or understood. */
export class HttpClient {
  readonly #access: Access;
  readonly #agent: Agent | PlainAgent;
  readonly #streams = new Set<IncomingMessage>();

  constructor(access: Access) {
    this.#access = access;
    this.#agent = access.url.startsWith("https:")
      ? new Agent({ keepAlive: true, maxSockets: 32 })
      : new PlainAgent({ keepAlive: true, maxSockets: 32 });
  }

  /** The bearer token that it sends; undefined where a certificate stands for it. */
  get token(): string | undefined {
    return this.#access.token;
  }

  async call(wish: RawRequest, signal: AbortSignal): Promise<Answer> {
    const message = await this.#send(wish, signal, this.#agent);
    const headers = Object.fromEntries(
      Object.entries(message.headers).map(([name, value]) => [
        name,
        Array.isArray(value) ? value.join(", ") : `${value}`,
      ]),
    );
    let text = "";
    message.setEncoding("utf8");
    for await (const part of message) text += part;
    const isJson = /^application\/([\w.-]+\+)?json\b/.test(headers["content-type"] ?? "");
    return { code: message.statusCode ?? 0, headers, body: isJson && text !== "" ? JSON.parse(text) : text };
  }

  /** Opens a stream on a connection of its own. The caller destroys it. */
  async open(wish: RawRequest, signal: AbortSignal): Promise<IncomingMessage> {
    const message = await this.#send(wish, signal, false);
    this.#streams.add(message);
    message.once("close", () => this.#streams.delete(message));
    return message;
  }

  close(): void {
    for (const stream of this.#streams) stream.destroy();
    this.#agent.destroy();
  }

  async #send(wish: RawRequest, signal: AbortSignal, agent: Agent | PlainAgent | false): Promise<IncomingMessage> {
    const { url, ca, token, cert, key } = this.#access;
    const { method, path, body, headers = {} } = wish;
    const text = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
    // Node gives a DELETE no length of its own, and its body would be read as the next request.
    const sized = text === undefined ? {} : { "content-length": String(Buffer.byteLength(text)) };
    const typed = text === undefined ? {} : { "content-type": "application/json" };
    const authorised = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const all = Object.fromEntries(
      Object.entries({ accept: "application/json", ...authorised, ...typed, ...sized, ...headers }).filter(
        ([, value]) => value !== "", // an empty header of the case takes a header away
      ),
    );
    const tls = url.startsWith("https:")
      ? { ...(ca === undefined ? {} : { ca }), ...(cert === undefined ? {} : { cert, key }) }
      : {};
    signal.throwIfAborted(); // Node would destroy the request before it can be listened to
    return new Promise((resolve, reject) => {
      const send = url.startsWith("https:") ? request : plainRequest;
      const sent = send(new URL(url + path), { method, headers: all, agent, signal, ...tls }, resolve);
      sent.on("error", reject);
      sent.end(text);
    });
  }
}
