import { mkdtemp, rm } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Logger, pino } from "pino";
import { type ApiServer, startApiServer } from "../../api-server/api-server.ts";
import type { KubeObject, ResourceApi } from "../../resource-api.ts";
import { isRecord, type JsonRecord, recordOf, recordsOf, textOf } from "../json-shape.ts";
import { type LocalNode, type LocalNodeOptions, startLocalNode } from "../local-node.ts";
import type { AgentProgram } from "../pod-root.ts";
import { claims, events, pods, refOf } from "../resources.ts";

export const quiet: Logger = pino({ level: process.env.TEST_LOG ?? "silent" });

/** The stand-in agent under the one image name. */
export const standIn: AgentProgram = {
  image: "agent:test",
  nodePath: process.execPath,
  directory: join(import.meta.dirname, "stand-in-agent"),
  entry: "agent.mjs",
};

/** An API server and a node over one data directory of their own. */
export interface TestCluster {
  readonly dataDir: string;
  readonly server: ApiServer;
  readonly api: ResourceApi;
  node: LocalNode;
  /** Stops the node and starts another over the same directory. */
  restartNode(): Promise<void>;
  close(): Promise<void>;
}

export async function openTestCluster(
  wish: Pick<LocalNodeOptions, "faults" | "backoff" | "stopGraceMs"> = {},
): Promise<TestCluster> {
  const dataDir = await mkdtemp(join(tmpdir(), "holdfast-node-"));
  const server = await startApiServer({ dataDir, port: 0, log: quiet });
  await ensureNamespace(server.api);
  const start = () => startLocalNode({ api: server.api, dataDir, agent: standIn, log: quiet, ...wish });
  const cluster: TestCluster = {
    dataDir,
    server,
    api: server.api,
    node: await start(),
    async restartNode() {
      await cluster.node.stop();
      cluster.node = await start();
    },
    async close() {
      await cluster.node.stop();
      await server.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
  return cluster;
}

/** The namespace that the tests use, made where the store is new. */
export async function ensureNamespace(api: ResourceApi): Promise<void> {
  const namespaces = { group: "", version: "v1", plural: "namespaces" };
  const present = await api.list(namespaces);
  if (present.items.some((item) => item.metadata.name === "default")) return;
  await api.create(namespaces, "", { apiVersion: "v1", kind: "Namespace", metadata: { name: "default" } });
}

/** A pod of the stand-in agent; `container` and `spec` are laid over it. */
export function agentPod(name: string, container: object = {}, spec: object = {}, metadata: object = {}): KubeObject {
  const given = recordsOf(recordOf(container).env);
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "default", ...metadata },
    spec: {
      terminationGracePeriodSeconds: 5,
      ...spec,
      containers: [
        {
          name: "agent",
          image: standIn.image,
          readinessProbe: { tcpSocket: { port: 1024 }, periodSeconds: 1 },
          ...container,
          env: [
            { name: "HOLDFAST_AGENT_HOST", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } },
            { name: "HOLDFAST_AGENT_TOKEN", valueFrom: { fieldRef: { fieldPath: "metadata.uid" } } },
            ...given,
          ],
        },
      ],
    },
  };
}

export function claim(name: string, spec: object = {}): KubeObject {
  return {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { name, namespace: "default" },
    spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } }, ...spec },
  };
}

/** A pod with the claim's disk at /workspace. */
export function podWithDisk(name: string, claimName: string, container: object = {}): KubeObject {
  const mounted = { volumeMounts: [{ name: "disk", mountPath: "/workspace" }], ...container };
  return agentPod(name, mounted, { volumes: [{ name: "disk", persistentVolumeClaim: { claimName } }] });
}

export function createPod(cluster: { api: ResourceApi }, pod: KubeObject): Promise<KubeObject> {
  return cluster.api.create(pods, "default", pod);
}

export function createClaim(cluster: { api: ResourceApi }, name: string, spec?: object): Promise<KubeObject> {
  return cluster.api.create(claims, "default", claim(name, spec));
}

/** Waits, by watching, until the pod of that name satisfies the test; undefined stands for "no such pod". */
export async function awaitPod(
  cluster: { api: ResourceApi },
  name: string,
  isIt: (pod: KubeObject | undefined) => boolean,
  withinMs = 20_000,
): Promise<KubeObject | undefined> {
  const stop = new AbortController();
  const deadline = setTimeout(() => stop.abort(), withinMs);
  try {
    const list = await cluster.api.list(pods, "default");
    let last = list.items.find((item) => item.metadata.name === name);
    if (isIt(last)) return last;
    for await (const event of cluster.api.watch(pods, list.resourceVersion, stop.signal, "default")) {
      if (event.object.metadata.name !== name) continue;
      last = event.type === "DELETED" ? undefined : event.object;
      if (isIt(last)) return last;
    }
    throw new Error(`pod ${name} did not get there within ${withinMs} ms: ${JSON.stringify(last?.status)}`);
  } finally {
    clearTimeout(deadline);
    stop.abort();
  }
}

export async function awaitReady(cluster: { api: ResourceApi }, name: string, uid?: string): Promise<KubeObject> {
  const pod = await awaitPod(cluster, name, (it) => isReady(it) && (uid === undefined || it?.metadata.uid === uid));
  if (pod === undefined) throw new Error(`pod ${name} is gone`);
  return pod;
}

export async function awaitGone(cluster: { api: ResourceApi }, name: string): Promise<void> {
  await awaitPod(cluster, name, (pod) => pod === undefined);
}

export function deletePod(cluster: { api: ResourceApi }, pod: KubeObject, wish: object = {}): Promise<void> {
  return cluster.api.delete(refOf(pods, pod), wish);
}

export function isReady(pod: KubeObject | undefined): boolean {
  return recordsOf(recordOf(pod?.status).conditions).some((c) => c.type === "Ready" && c.status === "True");
}

export function containerOf(pod: KubeObject | undefined) {
  const status = recordOf(recordsOf(recordOf(pod?.status).containerStatuses)[0]);
  const state = recordOf(status.state);
  const waiting = recordOf(state.waiting);
  return {
    restartCount: status.restartCount,
    running: isRecord(state.running),
    waitingFor: textOf(waiting.reason),
    waitingMessage: textOf(waiting.message),
    terminated: recordOf(state.terminated),
    lastTerminated: recordOf(recordOf(status.lastState).terminated),
  };
}

/** The status of one container, init containers included. */
export function statusOf(pod: KubeObject | undefined, container: string): JsonRecord {
  const { initContainerStatuses, containerStatuses } = recordOf(pod?.status);
  const all = [...recordsOf(initContainerStatuses), ...recordsOf(containerStatuses)];
  return recordOf(all.find((status) => status.name === container));
}

/** The pod's condition of that type. */
export function conditionOf(pod: KubeObject | undefined, type: string): JsonRecord {
  return recordOf(recordsOf(recordOf(pod?.status).conditions).find((condition) => condition.type === type));
}

/** Reasons of the pod's events, in the order in which they first came, once `last` is among them. */
export async function awaitEvents(cluster: { api: ResourceApi }, pod: KubeObject, last: string): Promise<string[]> {
  const stop = new AbortController();
  const seen: string[] = [];
  const isOver = (event: KubeObject) => {
    if (recordOf(event.involvedObject).uid === pod.metadata.uid) seen.push(textOf(event.reason) ?? "");
    return seen.includes(last);
  };
  const list = await cluster.api.list(events);
  list.items.sort((a, b) => Number(a.metadata.resourceVersion) - Number(b.metadata.resourceVersion));
  if (list.items.map(isOver).includes(true)) return seen;
  for await (const { type, object } of cluster.api.watch(events, list.resourceVersion, stop.signal))
    if (type === "ADDED" && isOver(object)) break;
  stop.abort();
  return seen;
}

export function ipOf(pod: KubeObject): string {
  return textOf(recordOf(pod.status).podIP) ?? "";
}

/** Runs JavaScript inside the pod's agent process; `fs` and `sh(line)` are at hand. */
export function evalIn(pod: KubeObject, source: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const options = { host: ipOf(pod), port: 1024, method: "POST", agent: false, timeout: 10_000 };
    const call = request(options, (response) => {
      let body = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        body += chunk;
      });
      response.on("error", reject);
      response.on("end", () => {
        if (response.statusCode === 200) resolve(JSON.parse(body));
        else reject(new Error(body));
      });
    });
    call.on("error", reject);
    call.end(source);
  });
}
