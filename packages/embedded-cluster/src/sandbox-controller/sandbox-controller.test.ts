import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { KubeObject } from "../resource-api.ts";
import { events, nameHash, nameHashLabel } from "./names.ts";
import {
  type ControlledCluster,
  claims,
  exists,
  isGone,
  isTerminating,
  openControlledCluster,
  pods,
  podTemplate,
  runningStatus,
  sandboxes,
  services,
  statusIn,
} from "./testing/controlled-cluster.ts";

let cluster: ControlledCluster;
let clock: { at: Date };
beforeEach(async () => {
  clock = { at: new Date("2030-01-01T00:00:00Z") };
  cluster = await openControlledCluster(() => clock.at);
});
afterEach(() => cluster.close());

const mergePatch = "application/merge-patch+json";
const patch = (resource: typeof pods, body: object, name = "a") =>
  cluster.api.patch({ resource, namespace: "default", name }, mergePatch, body);
const hash = nameHash("a");

async function running(spec: object = {}): Promise<KubeObject> {
  await cluster.createSandbox(spec);
  await cluster.until(pods, "a", exists);
  const pod = await cluster.runPod();
  await cluster.untilReason("Ready", "DependenciesReady");
  return pod;
}

describe("the name hash", () => {
  it("is FNV-1a of 32 bits in 8 hex digits", () => {
    expect(nameHash("a")).toBe("e40c292c");
    expect(nameHash("my-sandbox")).toBe("374de8f5");
  });
});

describe("a new Sandbox", () => {
  it("gets claim, pod and headless Service, each owned by it and labelled with its hash", async () => {
    const { metadata } = await cluster.createSandbox();
    await cluster.untilReason("Ready", "DependenciesNotReady");
    const owner = {
      apiVersion: "agents.x-k8s.io/v1beta1",
      kind: "Sandbox",
      name: "a",
      uid: metadata.uid,
      controller: true,
      blockOwnerDeletion: true,
    };
    for (const child of [
      await cluster.get(claims, "workspace-a"),
      await cluster.get(pods),
      await cluster.get(services),
    ]) {
      expect(child?.metadata.ownerReferences).toEqual([owner]);
      expect(child?.metadata.labels).toEqual({ [nameHashLabel]: hash });
      expect(child?.metadata.finalizers ?? []).not.toContain("foregroundDeletion");
    }
    expect((await cluster.get(pods))?.spec).toMatchObject({
      terminationGracePeriodSeconds: 25,
      volumes: [{ name: "workspace", persistentVolumeClaim: { claimName: "workspace-a" } }],
    });
    expect((await cluster.get(services))?.spec).toMatchObject({
      clusterIP: "None",
      selector: { [nameHashLabel]: hash },
      ports: [{ name: "agent", protocol: "TCP", port: 1024, targetPort: 1024 }],
    });
  });

  it("is told its pod's name, by a further write to it", async () => {
    const { metadata } = await cluster.createSandbox();
    const noted = await cluster.until(sandboxes, "a", (sandbox) => sandbox?.metadata.annotations !== undefined);
    expect(noted?.metadata.annotations).toEqual({ "agents.x-k8s.io/pod-name": "a" });
    expect(noted?.metadata.generation).toBe(metadata.generation);
    expect(noted?.metadata.resourceVersion).not.toBe(metadata.resourceVersion);
  });

  it("is Ready only once its pod runs, is ready and has an address", async () => {
    await cluster.createSandbox();
    const ready = async (reason: string) => (await cluster.untilReason("Ready", reason)).message;
    const messages = [await ready("DependenciesNotReady")];
    const report = async (status: object): Promise<void> => {
      const before = await cluster.condition("Ready");
      await cluster.reportPod(status);
      await cluster.until(
        sandboxes,
        "a",
        (sandbox) => !JSON.stringify(sandbox?.status).includes(before?.message ?? ""),
      );
      messages.push((await cluster.condition("Ready"))?.message ?? "");
    };
    await report({ phase: "Running", conditions: [{ type: "Ready", status: "False" }] });
    await report({ conditions: [{ type: "Ready", status: "True" }] });
    await report({ podIPs: [{ ip: "127.1.2.3" }] });
    expect(messages).toEqual([
      "Pod exists with phase: Pending; Service Exists",
      "Pod is Running but not Ready; Service Exists",
      "Pod is Ready but has no podIPs yet; Service Exists",
      "Pod is Ready; Service Exists",
    ]);
    expect(await cluster.condition("Ready")).toMatchObject({ status: "True", reason: "DependenciesReady" });
  });

  it("shows addresses, node, selector, Service, and its conditions in order", async () => {
    await running();
    expect(statusIn(await cluster.get(sandboxes))).toEqual({
      podIPs: ["127.1.2.3"],
      nodeName: "node-1",
      selector: `${nameHashLabel}=${hash}`,
      service: "a",
      serviceFQDN: "a.default.svc.cluster.local",
      conditions: [
        expect.objectContaining({
          type: "Suspended",
          status: "False",
          reason: "NotSuspended",
          message: "Sandbox is not suspended",
        }),
        expect.objectContaining({ type: "PodScheduled", status: "True", reason: "PodScheduled", message: "" }),
        expect.objectContaining({
          type: "Ready",
          status: "True",
          reason: "DependenciesReady",
          message: "Pod is Ready; Service Exists",
        }),
      ],
    });
  });

  it("without spec.service gets none and needs none; with false an owned one goes", async () => {
    await cluster.createSandbox({ service: undefined });
    await cluster.until(pods, "a", exists);
    await cluster.runPod();
    expect((await cluster.untilReason("Ready", "DependenciesReady")).message).toBe("Pod is Ready");
    expect(await cluster.get(services)).toBeUndefined();
    await patch(sandboxes, { spec: { service: true } });
    await cluster.until(services, "a", exists);
    await patch(sandboxes, { spec: { service: false } });
    await cluster.until(services, "a", isGone);
  });

  it("takes labels from its template but none of the system's, and not its own", async () => {
    const metadata = {
      labels: { "sandbox.namzu.ai/template": "t", "agents.x-k8s.io/stolen": "x", "extensions.agents.x-k8s.io/y": "z" },
      annotations: { note: "n" },
    };
    await cluster.createSandbox(podTemplate({}, metadata), {
      labels: { mine: "m", "agents.x-k8s.io/created-by": "me" },
    });
    const pod = await cluster.until(pods, "a", exists);
    expect(pod?.metadata.labels).toEqual({
      "sandbox.namzu.ai/template": "t",
      [nameHashLabel]: hash,
      "agents.x-k8s.io/created-by": "unknown",
    });
    expect(pod?.metadata.annotations).toEqual({
      note: "n",
      "agents.x-k8s.io/propagated-labels": "sandbox.namzu.ai/template",
      "agents.x-k8s.io/propagated-annotations": "note",
    });
  });
});

describe("suspend", () => {
  it("deletes the pod with its own grace, and is Suspended only once it is gone", async () => {
    await running();
    await cluster.setMode("Suspended");
    const leaving = await cluster.untilReason("Suspended", "PodTerminating");
    expect(leaving).toMatchObject({ status: "False", message: "Pod is terminating. Sandbox is suspending" });
    expect((await cluster.get(pods))?.metadata).toMatchObject({ deletionGracePeriodSeconds: 25 });
    expect(await cluster.condition("Ready")).toMatchObject({
      status: "False",
      reason: "SandboxSuspended",
      message: "Sandbox is suspending",
    });
    // The address of the dying pod stays.
    expect(statusIn(await cluster.get(sandboxes))).toMatchObject({ podIPs: ["127.1.2.3"] });

    await cluster.finishPod();
    expect(await cluster.untilReason("Suspended", "PodTerminated")).toMatchObject({ status: "True" });
    const sandbox = await cluster.get(sandboxes);
    const status = statusIn(sandbox);
    expect(status).not.toHaveProperty("podIPs");
    expect(status).not.toHaveProperty("nodeName");
    expect(status).toMatchObject({
      service: "a",
      serviceFQDN: "a.default.svc.cluster.local",
      selector: expect.any(String),
    });
    expect(sandbox?.metadata.annotations).toBeUndefined();
    expect(await cluster.get(claims, "workspace-a")).toBeDefined();
    expect(await cluster.get(services)).toBeDefined();
  });

  it("moves a transition time only with the condition's status", async () => {
    await running();
    const before = await cluster.condition("Suspended");
    clock.at = new Date("2030-01-01T00:01:00Z");
    await cluster.setMode("Suspended");
    expect((await cluster.untilReason("Suspended", "PodTerminating")).lastTransitionTime).toBe(
      before?.lastTransitionTime,
    );
    await cluster.finishPod();
    expect((await cluster.untilReason("Suspended", "PodTerminated")).lastTransitionTime).toBe("2030-01-01T00:01:00Z");
  });

  it("leaves a pod alone that is not the Sandbox's", async () => {
    await cluster.api.create(pods, "default", {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "a" },
      spec: { containers: [{ name: "x", image: "x" }] },
    });
    await cluster.createSandbox({ operatingMode: "Suspended" });
    expect(await cluster.untilReason("Suspended", "PodNotOwned")).toMatchObject({ status: "False" });
    expect((await cluster.get(pods))?.metadata.deletionTimestamp).toBeUndefined();
  });

  it("of a pod that never ends stays suspending", async () => {
    await running();
    await cluster.setMode("Suspended");
    await cluster.untilReason("Suspended", "PodTerminating");
    const dying = await cluster.get(pods);
    // A pass of any cause later: neither a second delete nor a claim that it is done.
    await patch(sandboxes, { spec: { service: false } });
    await cluster.untilReason("Suspended", "PodTerminating");
    expect((await cluster.get(pods))?.metadata.resourceVersion).toBe(dying?.metadata.resourceVersion);
  });
});

describe("resume", () => {
  it("makes a new pod of the same name on the same claim, from the template as it is now", async () => {
    const first = await running();
    const claim = await cluster.get(claims, "workspace-a");
    await cluster.setMode("Suspended");
    await cluster.until(pods, "a", isTerminating);
    await cluster.finishPod();
    await cluster.untilReason("Suspended", "PodTerminated");
    await patch(sandboxes, { spec: { podTemplate: { spec: { terminationGracePeriodSeconds: 7 } } } });
    await cluster.setMode("Running");
    const second = await cluster.until(pods, "a", exists);
    expect(second?.metadata.uid).not.toBe(first.metadata.uid);
    expect(second?.spec).toMatchObject({ terminationGracePeriodSeconds: 7 });
    expect((await cluster.get(claims, "workspace-a"))?.metadata.uid).toBe(claim?.metadata.uid);
    await cluster.untilReason("Suspended", "NotSuspended");
  });

  it("before the old pod is gone makes none, and meanwhile calls the dying pod Ready", async () => {
    const first = await running();
    await cluster.setMode("Suspended");
    await cluster.until(pods, "a", isTerminating);
    await cluster.setMode("Running");
    // The trap: Ready, for the new generation, with the address of the pod that is going.
    expect(await cluster.untilReason("Ready", "DependenciesReady")).toMatchObject({ status: "True" });
    expect(await cluster.condition("Suspended")).toMatchObject({ status: "False", reason: "NotSuspended" });
    expect((await cluster.get(pods))?.metadata.uid).toBe(first.metadata.uid);
    await cluster.finishPod();
    const second = await cluster.until(
      pods,
      "a",
      (pod) => pod !== undefined && pod.metadata.uid !== first.metadata.uid,
    );
    expect(second?.metadata.deletionTimestamp).toBeUndefined();
    await cluster.untilReason("Ready", "DependenciesNotReady");
  });
});

describe("a running Sandbox", () => {
  it("whose pod was deleted by someone gets another", async () => {
    const first = await running();
    await cluster.finishPod();
    const second = await cluster.until(
      pods,
      "a",
      (pod) => pod !== undefined && pod.metadata.uid !== first.metadata.uid,
    );
    expect(second).toBeDefined();
    expect(await cluster.condition("Suspended")).toMatchObject({ status: "False" });
  });

  it.each([
    ["Failed", "PodFailed"],
    ["Succeeded", "PodSucceeded"],
  ])("whose pod has %s keeps it, for ever", async (phase, reason) => {
    const pod = await running();
    await cluster.reportPod({ phase });
    await cluster.untilReason("Ready", reason);
    expect(await cluster.condition("Finished")).toMatchObject({ status: "True", reason });
    await patch(sandboxes, { spec: { service: false } });
    await cluster.until(services, "a", isGone);
    await cluster.untilReason("Ready", reason);
    expect((await cluster.get(pods))?.metadata.uid).toBe(pod.metadata.uid);
  });

  it("loses Finished with the pod that had ended", async () => {
    await running();
    await cluster.reportPod({ phase: "Failed" });
    await cluster.untilReason("Ready", "PodFailed");
    await cluster.setMode("Suspended");
    await cluster.untilReason("Suspended", "PodTerminated");
    expect(await cluster.condition("Finished")).toBeUndefined();
    expect(await cluster.condition("PodScheduled")).toBeUndefined();
  });

  it("brings its live pod the template's labels, removals too, and not its spec", async () => {
    await running(podTemplate({}, { labels: { keep: "1", drop: "1" } }));
    await patch(sandboxes, {
      spec: {
        podTemplate: { metadata: { labels: { keep: "2", drop: null } }, spec: { terminationGracePeriodSeconds: 1 } },
      },
    });
    const pod = await cluster.until(pods, "a", (item) => item?.metadata.labels?.keep === "2");
    expect(pod?.metadata.labels).toEqual({ keep: "2", [nameHashLabel]: hash });
    expect(pod?.metadata.annotations).toMatchObject({ "agents.x-k8s.io/propagated-labels": "keep" });
    expect(pod?.spec).toMatchObject({ terminationGracePeriodSeconds: 25 });
  });

  it("gets a deleted claim back, empty and in silence, but only at the next pass", async () => {
    await running();
    const first = await cluster.get(claims, "workspace-a");
    await patch(claims, { metadata: { finalizers: null } }, "workspace-a");
    await cluster.api.delete({ resource: claims, namespace: "default", name: "workspace-a" });
    // No child that is watched has changed, so nothing has happened.
    expect(await cluster.get(claims, "workspace-a")).toBeUndefined();
    await patch(sandboxes, { metadata: { annotations: { nudge: "1" } } });
    const second = await cluster.until(claims, "workspace-a", exists);
    expect(second?.metadata.uid).not.toBe(first?.metadata.uid);
  });

  it("with a pod of its name that another owns is in error, and touches nothing", async () => {
    const foreign = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "r", uid: "r-uid", controller: true };
    await cluster.api.create(pods, "default", {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "a", ownerReferences: [foreign] },
      spec: { containers: [{ name: "x", image: "x" }] },
    });
    await cluster.createSandbox();
    const { message } = await cluster.untilReason("Ready", "ReconcilerError");
    expect(message).toBe('Error seen: pod "a" is owned by ReplicaSet/r (UID: r-uid), not by sandbox "a"');
    expect((await cluster.get(pods))?.metadata.ownerReferences).toEqual([foreign]);
  });

  it("makes its pod even when its claim belongs to another", async () => {
    await cluster.api.create(claims, "default", {
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata: { name: "workspace-a" },
      spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
    });
    await cluster.createSandbox();
    expect((await cluster.untilReason("Ready", "ReconcilerError")).message).toContain(
      'cannot adopt unowned PVC "workspace-a"',
    );
    expect(await cluster.get(pods)).toBeDefined();
  });

  it("with two pods of its own refuses to choose, says so once, and leaves the Service", async () => {
    await running();
    const pod = await cluster.get(pods);
    await cluster.api.create(pods, "default", {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "b", labels: pod?.metadata.labels ?? {}, ownerReferences: pod?.metadata.ownerReferences ?? [] },
      spec: { containers: [{ name: "x", image: "x" }] },
    });
    expect((await cluster.untilReason("Ready", "MultiplePods")).message).toBe(
      "multiple Pods (2) are controlled by this Sandbox; refusing to choose or create a Pod",
    );
    expect(statusIn(await cluster.get(sandboxes))).toMatchObject({ service: "a" });
    await cluster.setMode("Suspended");
    await cluster.untilReason("Suspended", "PodStateUnknown");
    expect((await cluster.get(pods))?.metadata.deletionTimestamp).toBeUndefined();
    expect((await cluster.get(pods, "b"))?.metadata.deletionTimestamp).toBeUndefined();
    const { items } = await cluster.api.list(events);
    expect(items).toMatchObject([{ type: "Warning", reason: "MultiplePods" }]);
  });

  it("repairs an owned Service, and takes over one that carries its hash", async () => {
    await running();
    await patch(services, { spec: { selector: { [nameHashLabel]: "other", extra: "x" }, ports: null } });
    const repaired = await cluster.until(services, "a", (item) => JSON.stringify(item?.spec).includes(hash));
    expect(repaired?.spec).toMatchObject({ selector: { [nameHashLabel]: hash }, ports: [{ port: 1024 }] });
    expect(JSON.stringify(repaired?.spec)).not.toContain("extra");
    await patch(services, { metadata: { ownerReferences: null } });
    await patch(sandboxes, { metadata: { annotations: { nudge: "1" } } });
    await cluster.until(services, "a", (item) => item?.metadata.ownerReferences !== undefined);
  });
});

describe("expiry", () => {
  const past = "2029-12-31T00:00:00Z";

  it("says so, then deletes pod and Service, and keeps Sandbox and claim", async () => {
    await running();
    await patch(sandboxes, { spec: { shutdownTime: past } });
    await cluster.untilReason("Ready", "SandboxExpired");
    await cluster.until(pods, "a", isTerminating);
    await cluster.finishPod();
    await cluster.until(services, "a", isGone);
    const cleared = await cluster.until(
      sandboxes,
      "a",
      (sandbox) => Object.keys(statusIn(sandbox)).join() === "conditions",
    );
    expect(JSON.stringify(cleared?.status)).not.toContain("PodScheduled");
    expect(await cluster.get(claims, "workspace-a")).toBeDefined();
  });

  it("by policy deletes the Sandbox, and its claim with it", async () => {
    await running();
    await patch(sandboxes, { spec: { shutdownTime: past, shutdownPolicy: "Delete" } });
    await cluster.until(sandboxes, "a", isGone);
    await cluster.until(pods, "a", isTerminating);
    await cluster.finishPod();
    await cluster.until(claims, "workspace-a", isGone);
  });

  it("that has come already makes no pod, and moving it ahead brings one", async () => {
    await cluster.createSandbox({ shutdownTime: past });
    await cluster.untilReason("Ready", "SandboxExpired");
    expect(await cluster.get(pods)).toBeUndefined();
    await patch(sandboxes, { spec: { shutdownTime: "2031-01-01T00:00:00Z" } });
    await cluster.until(pods, "a", exists);
    await cluster.untilReason("Ready", "DependenciesNotReady");
  });

  it("that lies ahead is acted on when it comes", async () => {
    await running({ shutdownTime: "2030-01-01T00:00:01Z" });
    clock.at = new Date("2030-01-01T00:00:02Z");
    await cluster.untilReason("Ready", "SandboxExpired");
  });
});

describe("a deleted Sandbox", () => {
  it("in the foreground goes last, after its pod and its claim", async () => {
    await running();
    await cluster.api.delete(
      { resource: sandboxes, namespace: "default", name: "a" },
      { propagationPolicy: "Foreground" },
    );
    await cluster.until(pods, "a", isTerminating);
    // The pod still uses the claim, so both stay, and with them the Sandbox.
    await cluster.until(claims, "workspace-a", isTerminating);
    expect(await cluster.get(sandboxes)).toBeDefined();
    await cluster.reportPod({ ...runningStatus, phase: "Failed" });
    await cluster.finishPod();
    await cluster.until(sandboxes, "a", isGone);
    expect(await cluster.get(claims, "workspace-a")).toBeUndefined();
    expect(await cluster.get(services)).toBeUndefined();
  });
});

describe("many Sandboxes", () => {
  it("of one namespace are each given their own", async () => {
    const names = Array.from({ length: 40 }, (_, index) => `s${index}`);
    await Promise.all(names.map((name) => cluster.createSandbox({}, { name })));
    for (const name of names) {
      const pod = await cluster.until(pods, name, exists);
      expect(pod?.metadata.ownerReferences).toMatchObject([{ name }]);
      expect(await cluster.until(claims, `workspace-${name}`, exists)).toBeDefined();
    }
  });
});
