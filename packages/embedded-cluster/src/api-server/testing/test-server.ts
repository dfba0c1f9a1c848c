import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pino } from "pino";
import { parse as parseYaml } from "yaml";
import type { KubeObject } from "../../resource-api.ts";
import { type ApiServer, type ApiServerOptions, startApiServer } from "../api-server.ts";

/** Raw requests to a server, over its real socket, with the access that its kubeconfig gives. */
export interface RawClient {
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  /** As call, with the answer's headers. */
  exchange(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<HeadedAnswer>;
  watch(path: string): Promise<WatchReader>;
  /** The answer's head; its body is the caller's to read. */
  open(method: string, path: string, body: unknown, headers: Record<string, string>): Promise<IncomingMessage>;
}

/** A running API server over a folder of its own. */
export interface TestServer extends RawClient {
  readonly server: ApiServer;
  readonly dataDir: string;
  close(): Promise<void>;
}

export interface HeadedAnswer extends Answer {
  readonly headers: IncomingHttpHeaders;
}

export interface Answer {
  readonly code: number;
  readonly body: Answered;
}

/** What JSON.parse gives: raw answers are compared as they came. */
export type Answered = ReturnType<typeof JSON.parse>;

export const silent = pino({ level: "silent" });

export async function openTestServer(options: Partial<ApiServerOptions> = {}): Promise<TestServer> {
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), "holdfast-api-")));
  const server = await startApiServer({ dataDir, port: 0, log: silent, ...options });
  return {
    ...rawClient(server.kubeconfigPath),
    server,
    dataDir,
    close: async () => {
      await server.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

export function rawClient(kubeconfigPath: string): RawClient {
  const { url, ca, token } = readAccess(kubeconfigPath);
  const open = (method: string, path: string, body: unknown, headers: Record<string, string>) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const text = typeof body === "string" || body === undefined ? body : JSON.stringify(body);
      // Node gives a DELETE no length of its own, and its body would be read as the next request.
      const type =
        text === undefined
          ? {}
          : { "content-type": "application/json", "content-length": String(Buffer.byteLength(text)) };
      const all = { authorization: `Bearer ${token}`, ...type, ...headers };
      const { hostname, port } = new URL(url);
      // The path goes as it is written: a URL would resolve `..` in it.
      const sent = request({ hostname, port, path, method, ca, headers: all, agent: false }, resolve);
      sent.once("error", reject);
      sent.end(text);
    });
  const client: RawClient = {
    open,
    call: async (...request) => {
      const { code, body } = await client.exchange(...request);
      return { code, body };
    },
    exchange: async (method, path, body, headers = {}) => {
      const message = await open(method, path, body, headers);
      let text = "";
      for await (const chunk of message) text += chunk;
      const isJson = message.headers["content-type"] === "application/json";
      const { headers: answered } = message;
      return { code: message.statusCode ?? 0, headers: answered, body: isJson ? JSON.parse(text) : text };
    },
    watch: async (path) => new WatchReader(await open("GET", path, undefined, {})),
  };
  return client;
}

/** Makes the namespace that most tests use. */
export async function withDefaultNamespace(test: TestServer): Promise<TestServer> {
  await test.call("POST", "/api/v1/namespaces", { metadata: { name: "default" } });
  return test;
}

/** Reads a watch event by event. */
export class WatchReader {
  readonly message: IncomingMessage;
  readonly #lines: AsyncIterator<string>;

  constructor(message: IncomingMessage) {
    this.message = message;
    this.#lines = createInterface({ input: message })[Symbol.asyncIterator]();
  }

  /** The next event, or undefined when the stream has ended. */
  async next(): Promise<Answered> {
    const { value, done } = await this.#lines.next();
    return done === true ? undefined : JSON.parse(value);
  }

  /** The next events as `TYPE name`. */
  async summaries(count: number): Promise<string[]> {
    const seen: string[] = [];
    while (seen.length < count) {
      const event = await this.next();
      if (event === undefined) break;
      seen.push(`${event.type} ${event.object.metadata?.name ?? event.object.reason}`);
    }
    return seen;
  }

  close(): void {
    this.message.destroy();
  }
}

function readAccess(kubeconfigPath: string): { url: string; ca: string; token: string } {
  const config = parseYaml(readFileSync(kubeconfigPath, "utf8"));
  const [{ cluster }] = config.clusters;
  const [{ user }] = config.users;
  const ca = Buffer.from(String(cluster["certificate-authority-data"]), "base64").toString();
  return { url: String(cluster.server), ca, token: String(user.token) };
}

export const sandboxesPath = "/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes";
export const podsPath = "/api/v1/namespaces/default/pods";
export const secretsPath = "/api/v1/namespaces/default/secrets";
export const claimsPath = "/api/v1/namespaces/default/persistentvolumeclaims";

export function sandboxObject(name: string, spec: object = {}, metadata: object = {}): object {
  return {
    apiVersion: "agents.x-k8s.io/v1beta1",
    kind: "Sandbox",
    metadata: { name, ...metadata },
    spec: { podTemplate: { spec: { containers: [{ name: "agent", image: "x" }] } }, ...spec },
  };
}

export function podObject(name: string, spec: object = {}, metadata: object = {}): object {
  return { metadata: { name, ...metadata }, spec: { containers: [{ name: "agent", image: "x" }], ...spec } };
}

export function secretObject(name: string, metadata: object = {}): KubeObject {
  return { apiVersion: "v1", kind: "Secret", metadata: { name, ...metadata } };
}

export function claimObject(name: string): object {
  const resources = { requests: { storage: "1Gi" } };
  return { metadata: { name }, spec: { accessModes: ["ReadWriteOnce"], resources } };
}
