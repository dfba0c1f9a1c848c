import { mkdtemp, rm, writeFile } from "node:fs/promises";
import http, { type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** An API server that has many Sandboxes, in pages and in a watch, and nothing else. Objects are as large as real ones. */
export class ManySandboxes implements AsyncDisposable {
  readonly url: string;
  readonly kubeconfigPath: string;
  /** Every request, as "GET path?query". */
  readonly requests: string[] = [];
  readonly #server: http.Server;
  readonly #folder: string;
  readonly #items: string[];
  readonly #watches = new Set<ServerResponse>();
  #version = 100_000;

  private constructor(server: http.Server, folder: string, count: number) {
    this.#server = server;
    this.#folder = folder;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    this.kubeconfigPath = join(folder, "kubeconfig");
    this.#items = Array.from({ length: count }, (_, index) => JSON.stringify(sandboxOf(index, 1, index % 4 === 0)));
    server.on("request", (request, reply) => this.#serve(new URL(request.url ?? "/", this.url), reply));
  }

  static async start(count: number): Promise<ManySandboxes> {
    const server = http.createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const folder = await mkdtemp(join(tmpdir(), "holdfast-scale-"));
    const many = new ManySandboxes(server, folder, count);
    await writeFile(many.kubeconfigPath, kubeconfigOf(many.url));
    return many;
  }

  /** Bytes of one object. */
  get objectBytes(): number {
    return this.#items[0]?.length ?? 0;
  }

  /** The mode of this one changes; watches hear of it. */
  change(index: number, isSuspended: boolean): void {
    this.#version += 1;
    const object = sandboxOf(index, this.#version, isSuspended);
    this.#items[index] = JSON.stringify(object);
    for (const reply of this.#watches) reply.write(`{"type":"MODIFIED","object":${this.#items[index]}}\n`);
  }

  /** How many watches stand. */
  get watches(): number {
    return this.#watches.size;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
    await rm(this.#folder, { recursive: true, force: true });
  }

  #serve(url: URL, reply: ServerResponse): void {
    if (!url.pathname.endsWith("/sandboxes")) return void reply.writeHead(404).end("{}");
    this.requests.push(`GET ${url.pathname}${url.search}`);
    reply.setHeader("content-type", "application/json");
    if (url.searchParams.get("watch") !== "true") return void reply.end(this.#page(url.searchParams));
    reply.writeHead(200).flushHeaders();
    this.#watches.add(reply);
    reply.on("close", () => this.#watches.delete(reply));
  }

  #page(query: URLSearchParams): string {
    const from = Number(query.get("continue") ?? 0);
    const next = from + Number(query.get("limit") ?? this.#items.length);
    const more = next < this.#items.length ? `,"continue":"${next}"` : "";
    const items = this.#items.slice(from, next).join(",");
    return `{"kind":"SandboxList","metadata":{"resourceVersion":"${this.#version}"${more}},"items":[${items}]}`;
  }
}

/** Reads all of them by the API server's own pages, and parses each: what nobody who lists can do without. */
export async function rawList(url: string, limit: number): Promise<number> {
  const agent = new http.Agent({ keepAlive: true });
  let count = 0;
  let from: string | undefined;
  do {
    const query = new URLSearchParams({ limit: String(limit), ...(from === undefined ? {} : { continue: from }) });
    const path = `/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes?${query}`;
    const page = JSON.parse(await textAt(`${url}${path}`, agent)) as {
      metadata: { continue?: string };
      items: unknown[];
    };
    count += page.items.length;
    from = page.metadata.continue;
  } while (from !== undefined);
  agent.destroy();
  return count;
}

function textAt(url: string, agent: http.Agent): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = http.get(url, { agent }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () => resolve(Buffer.concat(chunks).toString("utf8")));
      response.on("error", reject);
    });
    request.on("error", reject);
  });
}

/** Of about 3 kB, as an API server with managed fields keeps one. */
function sandboxOf(index: number, version: number, isSuspended: boolean): object {
  const name = `namzu-ws-w-${String(index).padStart(6, "0")}`;
  const time = "2026-01-02T03:04:05Z";
  return {
    apiVersion: "agents.x-k8s.io/v1beta1",
    kind: "Sandbox",
    metadata: {
      name,
      namespace: "default",
      uid: `00000000-0000-4000-8000-${String(index).padStart(12, "0")}`,
      resourceVersion: String(version),
      generation: 2,
      creationTimestamp: time,
      annotations: {
        "holdfast.dev/created-by": "3f0c9c1e-0000-4000-8000-000000000000",
        "holdfast.dev/written-by": "3f0c9c1e-0000-4000-8000-000000000001",
        "sandbox.namzu.ai/pod-template-hash": `sha256:${"a".repeat(64)}`,
        ...(isSuspended ? { "sandbox.namzu.ai/operating-mode-changed-at": "2026-02-02T03:04:05.678Z" } : {}),
      },
      managedFields: ["holdfast", "controller"].map((manager) => ({
        manager,
        operation: "Update",
        apiVersion: "agents.x-k8s.io/v1beta1",
        time,
        fieldsType: "FieldsV1",
        fieldsV1: Object.fromEntries(Array.from({ length: 12 }, (_, at) => [`f:field-number-${at}`, { "f:name": {} }])),
      })),
    },
    spec: {
      operatingMode: isSuspended ? "Suspended" : "Running",
      service: true,
      podTemplate: {
        metadata: { labels: { "sandbox.namzu.ai/template": index % 2 === 0 ? "even" : "odd" } },
        spec: {
          containers: [
            {
              name: "agent",
              image: "registry.example/holdfast/guest-agent:0.1.0",
              env: [{ name: "HOLDFAST_WORKSPACE_ROOT", value: "/workspace" }],
              resources: { requests: { cpu: "100m", memory: "256Mi" }, limits: { memory: "1Gi" } },
              readinessProbe: { exec: { command: ["/opt/holdfast/ready"] }, periodSeconds: 1 },
              volumeMounts: [{ name: "disk", mountPath: "/workspace" }],
            },
          ],
          securityContext: { runAsNonRoot: true, runAsUser: 1001, seccompProfile: { type: "RuntimeDefault" } },
        },
      },
      volumeClaimTemplates: [
        {
          metadata: { name: "disk" },
          spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
        },
      ],
    },
    status: {
      conditions: ["Ready", "Suspended"].map((type) => ({
        type,
        status: "False",
        reason: "SandboxSuspended",
        message: "The pod is gone and the disk is kept.",
        lastTransitionTime: time,
        observedGeneration: 2,
      })),
    },
  };
}

function kubeconfigOf(server: string): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "many", cluster: { server, "insecure-skip-tls-verify": true } }],
    users: [{ name: "tester", user: { token: "token" } }],
    contexts: [{ name: "many", context: { cluster: "many", user: "tester", namespace: "default" } }],
    "current-context": "many",
  });
}
