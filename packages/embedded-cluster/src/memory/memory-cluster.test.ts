import { Agent, type IncomingMessage, request } from "node:http";
import type { Duplex } from "node:stream";
import { afterEach, describe, expect, it } from "vitest";
import { LostReplyError } from "../faults/fate.ts";
import { listIn, stringIn } from "../json.ts";
import type { KubeObject, ObjectRef, ResourceRef } from "../resource-api.ts";
import { type MemoryCluster, type MemoryClusterOptions, startMemoryCluster } from "./memory-cluster.ts";
import { memoryToken } from "./memory-listener.ts";

const sandboxes: ResourceRef = { group: "agents.x-k8s.io", version: "v1beta1", plural: "sandboxes" };
const pods: ResourceRef = { group: "", version: "v1", plural: "pods" };
const merge = "application/merge-patch+json";

let cluster: MemoryCluster;
afterEach(() => cluster.stop());

const open = async (options: MemoryClusterOptions = {}): Promise<void> => {
  cluster = await startMemoryCluster(options);
};

const at = (resource: ResourceRef, name = "a"): ObjectRef => ({ resource, namespace: "default", name });
const podTemplate = { spec: { containers: [{ name: "agent", image: "x" }] } };
const sandbox = (name = "a"): KubeObject => ({
  apiVersion: "agents.x-k8s.io/v1beta1",
  kind: "Sandbox",
  metadata: { name },
  spec: { podTemplate },
});
const create = (name = "a") => cluster.api().create(sandboxes, "default", sandbox(name));
const setMode = (operatingMode: string) =>
  cluster.api("holder").patch(at(sandboxes), merge, { spec: { operatingMode } });
const find = (resource: ResourceRef, name = "a") =>
  cluster
    .api("test")
    .get(at(resource, name))
    .catch(() => undefined);
const reasonOf = async (type: string) =>
  stringIn(
    listIn((await find(sandboxes))?.status, "conditions").find((item) => stringIn(item, "type") === type),
    "reason",
  );

describe("a cluster in memory", () => {
  it("makes a Sandbox's pod, which runs step by step by the test's word", async () => {
    await open();
    await create();
    await cluster.settle();
    expect(cluster.node.steps()).toMatchObject([{ step: "bind", name: "a" }]);
    for (const step of ["bind", "start", "ready"]) {
      expect(await cluster.node.take()).toMatchObject({ step, name: "a" });
      await cluster.settle();
    }
    expect(cluster.node.steps()).toEqual([]);
    expect(await reasonOf("Ready")).toBe("DependenciesReady");

    await setMode("Suspended");
    await cluster.settle();
    expect(await reasonOf("Suspended")).toBe("PodTerminating");
    expect(cluster.node.steps()).toMatchObject([{ step: "finish", name: "a" }]);
    await cluster.node.take();
    await cluster.settle();
    expect(await find(pods)).toBeUndefined();
    expect(await reasonOf("Suspended")).toBe("PodTerminated");
  });

  it("runs pods by itself with node: auto, and restarts a container that was killed", async () => {
    await open({ node: "auto" });
    await create();
    await cluster.settle();
    expect(await reasonOf("Ready")).toBe("DependenciesReady");
    await cluster.faults.node.killContainer({ name: "a" });
    await cluster.settle();
    expect(await find(pods)).toMatchObject({
      status: { phase: "Running", containerStatuses: [{ restartCount: 1, ready: true }] },
    });
  });

  it("evicts, refuses scheduling and fails pulls as a node does", async () => {
    await open({ node: "auto" });
    const undo = cluster.faults.node.holdScheduling({ name: "a" });
    await create();
    await cluster.settle();
    expect(await find(pods)).toMatchObject({
      status: { phase: "Pending", conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable" }] },
    });
    undo();
    await cluster.settle();
    await cluster.faults.node.evict({ name: "a" });
    expect(await find(pods)).toMatchObject({ status: { phase: "Failed", reason: "Evicted" } });

    cluster.faults.node.failImagePull({ name: "b" });
    await create("b");
    await cluster.settle();
    expect(await find(pods, "b")).toMatchObject({
      status: { containerStatuses: [{ state: { waiting: { reason: "ErrImagePull" } } }] },
    });
  });

  it("goes on after the controller was killed in the middle of a write, applied or not", async () => {
    await open();
    const held = cluster.faults.hold({ by: "controller", verb: "create", resource: "pods" });
    await create();
    await held.reached;
    await cluster.killController();
    held.applyThenDrop();
    await cluster.settle();
    expect(await find(pods)).toBeDefined();
    await cluster.startController();
    await cluster.settle();
    await cluster.node.takeAll();
    await cluster.settle();
    expect((await cluster.api().list(pods, "default")).items).toHaveLength(1);
    expect(await reasonOf("Ready")).toBe("DependenciesReady");
  });

  it("keeps a stale controller's view until it is let go", async () => {
    await open({ node: "auto" });
    await create();
    await cluster.settle();
    const stall = cluster.faults.stallWatches({ by: "controller", resource: "sandboxes" });
    await setMode("Suspended");
    await cluster.settle();
    expect((await find(pods))?.metadata.deletionTimestamp).toBeUndefined();
    stall.undo();
    await cluster.settle();
    expect(await find(pods)).toBeUndefined();
  });
});

describe("a request of an in-process caller", () => {
  it("that is held, then applied without a reply, has landed though its caller cannot know", async () => {
    await open({ controller: false });
    await create();
    const held = cluster.faults.hold({ by: "holder", verb: "patch", resource: "sandboxes" });
    const write = setMode("Suspended");
    expect(await held.reached).toMatchObject({ name: "a", by: "holder" });
    expect(await find(sandboxes)).toMatchObject({ spec: { operatingMode: "Running" } });
    held.applyThenDrop();
    await expect(write).rejects.toBeInstanceOf(LostReplyError);
    expect(await find(sandboxes)).toMatchObject({ spec: { operatingMode: "Suspended" } });
  });

  it("that is late lands when the test says so, and by then may be refused", async () => {
    await open({ controller: false });
    const created = await create();
    const late = cluster.faults.late({ by: "holder" });
    const body = {
      metadata: { resourceVersion: created.metadata.resourceVersion },
      spec: { operatingMode: "Suspended" },
    };
    await expect(cluster.api("holder").patch(at(sandboxes), merge, body)).rejects.toBeInstanceOf(LostReplyError);
    await setMode("Running");
    expect(await find(sandboxes)).toMatchObject({ spec: { operatingMode: "Running" } });
    await cluster.api("other").patch(at(sandboxes), merge, { metadata: { labels: { x: "y" } } });
    expect(await late.land()).toMatchObject({ code: 409 });
    expect(await find(sandboxes)).toMatchObject({ spec: { operatingMode: "Running" } });
  });
});

describe("a client over a connection in memory", () => {
  const send = (by: string, method: string, path: string, body?: object): Promise<IncomingMessage> =>
    new Promise((resolve, reject) => {
      const agent = new Agent({ keepAlive: true });
      agent.createConnection = (): Duplex => cluster.connect(by);
      const text = body === undefined ? undefined : JSON.stringify(body);
      const headers = {
        authorization: `Bearer ${memoryToken}`,
        ...(text === undefined
          ? {}
          : { "content-type": "application/merge-patch+json", "content-length": text.length }),
      };
      const sent = request({ method, path, agent, headers }, resolve);
      sent.once("error", reject);
      sent.end(text);
    });
  const jsonOf = async (answer: IncomingMessage) => {
    let text = "";
    for await (const chunk of answer) text += chunk;
    return JSON.parse(text);
  };
  const path = "/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes";

  it("is answered as over the network, watches too, and is known by its name", async () => {
    await open({ controller: false });
    await create();
    expect(await jsonOf(await send("holder", "GET", `${path}/a`))).toMatchObject({ kind: "Sandbox" });
    const watch = await send("holder", "GET", `${path}?watch=true`);
    const [first] = await watch.take(1).toArray();
    expect(JSON.parse(String(first))).toMatchObject({ type: "ADDED", object: { metadata: { name: "a" } } });
    cluster.faults.add({ match: { by: "holder", verb: "patch" }, action: { t: "fail", code: 503 } });
    const suspend = { spec: { operatingMode: "Suspended" } };
    expect((await send("holder", "PATCH", `${path}/a`, suspend)).statusCode).toBe(503);
    expect((await send("other", "PATCH", `${path}/a`, suspend)).statusCode).toBe(200);
  });

  it("that loses its reply finds its connection cut, and its write applied", async () => {
    await open({ controller: false });
    await create();
    cluster.faults.add({ match: { by: "holder" }, action: { t: "applyThenDrop" } });
    await expect(send("holder", "PATCH", `${path}/a`, { spec: { operatingMode: "Suspended" } })).rejects.toThrow();
    expect(await find(sandboxes)).toMatchObject({ spec: { operatingMode: "Suspended" } });
  });
});
