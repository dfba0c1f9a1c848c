import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import http, { type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A request as it reached the scripted server. */
export interface Received {
  readonly method: string;
  readonly url: URL;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: unknown;
  readonly socket: Socket;
}

export type Script = (received: Received, reply: ServerResponse) => void | Promise<void>;

/** An API server for tests that says exactly what it is told to. It is the network's other end and nothing more. */
export class ScriptedApi implements AsyncDisposable {
  readonly received: Received[] = [];
  readonly kubeconfigPath: string;
  readonly #server: http.Server;
  readonly #folder: string;
  #script: Script = (_received, reply) => status(reply, 404, "NotFound");
  #waiting: { readonly count: number; readonly resolve: () => void }[] = [];

  private constructor(server: http.Server) {
    this.#server = server;
    this.#folder = mkdtempSync(join(tmpdir(), "holdfast-kube-"));
    this.kubeconfigPath = join(this.#folder, "kubeconfig");
    writeFileSync(this.kubeconfigPath, kubeconfigText(this.address));
    server.on("request", (request, reply) => void this.#serve(request, reply));
  }

  static async start(script?: Script): Promise<ScriptedApi> {
    const server = http.createServer({ keepAliveTimeout: 120_000 }); // As an API server: it is the client who lets go.
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const api = new ScriptedApi(server);
    if (script) api.script(script);
    return api;
  }

  get address(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** What is answered from now on. */
  script(script: Script): void {
    this.#script = script;
  }

  /** Resolves once this many requests have come. */
  reached(count: number): Promise<void> {
    if (this.received.length >= count) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push({ count, resolve }));
  }

  /** How many connections the requests came over. */
  get connections(): number {
    return new Set(this.received.map(({ socket }) => socket)).size;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #serve(request: IncomingMessage, reply: ServerResponse): Promise<void> {
    const text = await textOf(request).catch(() => undefined);
    if (text === undefined) return; // The client went away.
    const received: Received = {
      method: request.method ?? "",
      url: new URL(request.url ?? "/", "http://scripted"),
      headers: request.headers,
      body: text === "" ? undefined : JSON.parse(text),
      socket: request.socket,
    };
    this.received.push(received);
    for (const waiting of this.#waiting) if (this.received.length >= waiting.count) waiting.resolve();
    this.#waiting = this.#waiting.filter(({ count }) => this.received.length < count);
    await this.#script(received, reply);
  }
}

/** Answers with JSON. */
export function json(reply: ServerResponse, code: number, body: unknown, headers: http.OutgoingHttpHeaders = {}): void {
  reply.writeHead(code, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
}

/** Answers with a Status, as an API server refuses. */
export function status(
  reply: ServerResponse,
  code: number,
  reason: string,
  more: { readonly message?: string; readonly details?: object; readonly headers?: http.OutgoingHttpHeaders } = {},
): void {
  const { message = `scripted ${reason}`, details = {} } = more;
  const body = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, reason, details, code };
  json(reply, code, body, more.headers);
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}

/** A kubeconfig for a plain server, as YAML's subset JSON. */
export function kubeconfigText(server: string): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "scripted", cluster: { server, "insecure-skip-tls-verify": true } }],
    users: [{ name: "tester", user: { token: "scripted-token" } }],
    contexts: [{ name: "scripted", context: { cluster: "scripted", user: "tester", namespace: "team-a" } }],
    "current-context": "scripted",
  });
}
