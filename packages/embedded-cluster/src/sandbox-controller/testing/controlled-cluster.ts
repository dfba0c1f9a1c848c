import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { type ApiServer, startApiServer } from "../../api-server/api-server.ts";
import { silent } from "../../api-server/testing/test-server.ts";
import { isApiStatus } from "../../api-status-error.ts";
import { objectIn } from "../../json.ts";
import type { KubeObject, ObjectRef, ResourceApi, ResourceRef } from "../../resource-api.ts";
import { conditionsIn, type StampedCondition } from "../condition-list.ts";
import { claims, pods, sandboxes, services } from "../names.ts";
import { startSandboxController } from "../sandbox-controller.ts";

/** An API server with the controller on it. The test is the kubelet: no pod runs but by its word. */
export interface ControlledCluster {
  readonly api: ResourceApi;
  readonly server: ApiServer;
  /** Creates the Sandbox `a`, of one claim and with a Service unless the spec says otherwise. */
  createSandbox(spec?: object, metadata?: object): Promise<KubeObject>;
  setMode(mode: "Running" | "Suspended"): Promise<KubeObject>;
  get(resource: ResourceRef, name?: string): Promise<KubeObject | undefined>;
  /** Waits until the object is as `check` says; undefined stands for one that is gone. */
  until(
    resource: ResourceRef,
    name: string,
    check: (object: KubeObject | undefined) => boolean,
  ): Promise<KubeObject | undefined>;
  /** Waits until a condition of Sandbox `a` has this reason for its current generation. */
  untilReason(type: string, reason: string): Promise<StampedCondition>;
  condition(type: string): Promise<StampedCondition | undefined>;
  /** As a kubelet: binds the pod and reports it running and ready. */
  runPod(name?: string): Promise<KubeObject>;
  reportPod(status: object, name?: string): Promise<KubeObject>;
  /** As a kubelet: confirms that a terminating pod is gone. */
  finishPod(name?: string): Promise<void>;
  close(): Promise<void>;
}

export const podTemplate = (spec: object = {}, metadata: object = {}): object => ({
  podTemplate: {
    metadata,
    spec: {
      terminationGracePeriodSeconds: 25,
      containers: [{ name: "agent", image: "x", ports: [{ name: "agent", containerPort: 1024 }] }],
      ...spec,
    },
  },
});

const workspaceClaim = {
  metadata: { name: "workspace" },
  spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
};

export async function openControlledCluster(now: () => Date = () => new Date()): Promise<ControlledCluster> {
  const dataDir = await mkdtemp(join(tmpdir(), "holdfast-controller-"));
  const server = await startApiServer({ dataDir, port: 0, log: silent });
  const { api } = server;
  const namespaces = { group: "", version: "v1", plural: "namespaces" };
  await api.create(namespaces, "", { apiVersion: "v1", kind: "Namespace", metadata: { name: "default" } });
  const controller = await startSandboxController({ api, log: silent, now });
  const at = (resource: ResourceRef, name: string): ObjectRef => ({ resource, namespace: "default", name });

  const cluster: ControlledCluster = {
    api,
    server,
    createSandbox: (spec = {}, metadata = {}) =>
      api.create(sandboxes, "default", {
        apiVersion: "agents.x-k8s.io/v1beta1",
        kind: "Sandbox",
        metadata: { name: "a", ...metadata },
        spec: { service: true, volumeClaimTemplates: [workspaceClaim], ...podTemplate(), ...spec },
      }),
    setMode: (operatingMode) =>
      api.patch(at(sandboxes, "a"), "application/merge-patch+json", { spec: { operatingMode } }),
    get: (resource, name = "a") =>
      api.get(at(resource, name)).catch((error: unknown) => {
        if (isApiStatus(error, 404)) return undefined;
        throw error;
      }),
    until: async (resource, name, check) => {
      const limit = AbortSignal.timeout(5_000);
      // The version of a list taken before the object was read: no change is missed.
      const { resourceVersion } = await api.list(resource, "default");
      let seen = await cluster.get(resource, name);
      if (check(seen)) return seen;
      for await (const event of api.watch(resource, resourceVersion, limit, "default")) {
        if (event.object.metadata.name !== name) continue;
        seen = event.type === "DELETED" ? undefined : event.object;
        if (check(seen)) return seen;
      }
      throw new Error(
        `${resource.plural} ${name} did not become as awaited; it is ${JSON.stringify(seen, undefined, 1)}`,
      );
    },
    untilReason: async (type, reason) => {
      const has = (sandbox: KubeObject | undefined) =>
        conditionsIn(sandbox?.status).find(
          (item) =>
            item.type === type && item.reason === reason && item.observedGeneration === sandbox?.metadata.generation,
        );
      const found = has(await cluster.until(sandboxes, "a", (sandbox) => has(sandbox) !== undefined));
      if (found === undefined) throw new Error("unreachable: until has seen it");
      return found;
    },
    condition: async (type) => conditionsIn((await cluster.get(sandboxes))?.status).find((item) => item.type === type),
    reportPod: (status, name = "a") => api.patch(at(pods, name), "application/merge-patch+json", { status }, "status"),
    runPod: async (name = "a") => {
      const { metadata } = await api.get(at(pods, name));
      await api.bind(at(pods, name), { uid: metadata.uid ?? "", nodeName: "node-1" });
      return cluster.reportPod(runningStatus, name);
    },
    finishPod: async (name = "a") => {
      await api.delete(at(pods, name), { gracePeriodSeconds: 0 });
    },
    close: async () => {
      await controller.stop();
      await server.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
  return cluster;
}

export const runningStatus = {
  phase: "Running",
  podIP: "127.1.2.3",
  podIPs: [{ ip: "127.1.2.3" }],
  conditions: [
    { type: "PodScheduled", status: "True" },
    { type: "Ready", status: "True" },
  ],
};

/** Tells whether an object exists; for `until`. */
export const exists = (object: KubeObject | undefined): boolean => object !== undefined;
export const isGone = (object: KubeObject | undefined): boolean => object === undefined;
export const isTerminating = (object: KubeObject | undefined): boolean =>
  object?.metadata.deletionTimestamp !== undefined;

/** The status of the Sandbox as an object. */
export function statusIn(object: KubeObject | undefined): Record<string, unknown> {
  expect(object).toBeDefined();
  return objectIn(object, "status") ?? {};
}

export { claims, pods, sandboxes, services };
