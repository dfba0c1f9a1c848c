import { Agent as HttpAgent, type IncomingMessage, type RequestOptions, request as requestPlain } from "node:http";
import { Agent as HttpsAgent, request as requestSecure } from "node:https";
import type { ServerAccess } from "./server-access.ts";

export interface ApiCall {
  readonly method: string;
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: { readonly type: string; readonly text: string };
  readonly signal?: AbortSignal;
}

/** How long an answer may take to begin. A watch begins as fast as a list. */
const answerMs = 30_000;
/** TCP asks after a silent peer from then on: a watch may be silent for a minute. */
const keepAliveMs = 30_000;

/** Requests to one API server, over connections that are used again. */
export class ApiConnection {
  readonly #access: ServerAccess;
  readonly #agent: HttpAgent;
  readonly #isSecure: boolean;

  constructor(access: ServerAccess) {
    this.#access = access;
    this.#isSecure = new URL(access.url).protocol === "https:";
    const options = { keepAlive: true, keepAliveMsecs: keepAliveMs };
    const { ca, clientCertificate } = access;
    this.#agent = this.#isSecure
      ? new HttpsAgent({ ...options, ...(ca === undefined ? {} : { ca }), ...(clientCertificate ?? {}) })
      : new HttpAgent(options);
  }

  /** Resolves with the answer's head; its body is still to be read. Rejects when there is none in time. */
  open({ method, path, query = {}, body, signal }: ApiCall): Promise<IncomingMessage> {
    const url = new URL(this.#access.url);
    url.pathname = `${url.pathname.replace(/\/$/, "")}${path}`;
    url.search = new URLSearchParams(query).toString();
    const { token } = this.#access;
    const options: RequestOptions = {
      method,
      agent: this.#agent,
      ...(signal === undefined ? {} : { signal }),
      headers: {
        accept: "application/json",
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        // Node gives a DELETE no length of its own, and its body would be read as the next request.
        ...(body === undefined
          ? {}
          : { "content-type": body.type, "content-length": String(Buffer.byteLength(body.text)) }),
      },
    };
    return new Promise((resolve, reject) => {
      const sent = (this.#isSecure ? requestSecure : requestPlain)(url, options);
      const late = setTimeout(() => {
        sent.destroy(new Error(`${method} ${path}: no answer within ${answerMs} ms; whether it was done is not known`));
      }, answerMs);
      sent.once("response", (answer) => {
        clearTimeout(late);
        resolve(answer);
      });
      sent.once("error", (error) => {
        clearTimeout(late);
        reject(error);
      });
      sent.end(body?.text);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}
