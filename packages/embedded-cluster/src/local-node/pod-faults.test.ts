import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { NoSuchPodError } from "../faults/node-faults.ts";
import type { KubeObject } from "../resource-api.ts";
import { recordOf } from "./json-shape.ts";
import { noFaults } from "./node-fault-hands.ts";
import { readContainerLog } from "./read-container-log.ts";
import {
  agentPod,
  awaitEvents,
  awaitGone,
  awaitPod,
  awaitReady,
  conditionOf,
  containerOf,
  createClaim,
  createPod,
  deletePod,
  evalIn,
  isReady,
  openTestCluster,
  podWithDisk,
  statusOf,
  type TestCluster,
} from "./testing/cluster.ts";
import { processesWith } from "./testing/processes.ts";

let cluster: TestCluster;
const open = async (wish: Parameters<typeof openTestCluster>[0] = {}) => {
  cluster = await openTestCluster({ backoff: { firstMs: 200, longestMs: 1_000 }, ...wish });
};
afterEach(() => cluster.close());

describe("a pod that is evicted", () => {
  beforeEach(() => open());

  it("is Failed with reason Evicted, its processes gone, its disk kept; it is never run again", async () => {
    await createClaim(cluster, "disk");
    const made = await createPod(cluster, podWithDisk("unlucky", "disk"));
    await evalIn(await awaitReady(cluster, "unlucky"), 'fs.writeFileSync("/workspace/kept", "bytes")');
    await cluster.node.faults.evict({ name: "unlucky" }, "The node had too little of it.");
    const pod = await awaitPod(cluster, "unlucky", () => true); // no waiting: it is stored by now
    expect(pod?.status).toMatchObject({
      phase: "Failed",
      reason: "Evicted",
      message: "The node had too little of it.",
    });
    expect(conditionOf(pod, "DisruptionTarget")).toMatchObject({ status: "True", reason: "TerminationByKubelet" });
    expect(conditionOf(pod, "Ready")).toMatchObject({ status: "False", reason: "PodFailed" });
    expect(statusOf(pod, "agent").state).toMatchObject({ terminated: { exitCode: 0 } }); // it was asked, and obeyed
    expect(processesWith(made.metadata.uid ?? "none")).toEqual([]);
    expect(await awaitEvents(cluster, made, "Evicted")).toContain("Evicted");

    await cluster.restartNode();
    const after = await awaitPod(cluster, "unlucky", () => true);
    expect(after?.status).toMatchObject({ phase: "Failed", reason: "Evicted" });
    expect(conditionOf(after, "DisruptionTarget").status).toBe("True");

    await createPod(cluster, podWithDisk("successor", "disk"));
    const next = await awaitReady(cluster, "successor");
    expect(await evalIn(next, 'return fs.readFileSync("/workspace/kept", "utf8")')).toBe("bytes");
    await deletePod(cluster, made);
    await awaitGone(cluster, "unlucky");
  });

  it("that has ended already stays what it is; one that cannot start is Failed at once", async () => {
    await createPod(cluster, agentPod("over", { command: ["true"] }, { restartPolicy: "Never" }));
    await awaitPod(cluster, "over", (pod) => recordOf(pod?.status).phase === "Succeeded");
    await cluster.node.faults.evict({ name: "over" });
    const over = await awaitPod(cluster, "over", () => true);
    expect(over?.status).toMatchObject({ phase: "Succeeded" });

    await createPod(cluster, agentPod("stuck", { image: "another" }));
    await awaitPod(cluster, "stuck", (pod) => containerOf(pod).waitingFor === "ErrImagePull");
    await cluster.node.faults.evict({ name: "stuck" });
    const stuck = await awaitPod(cluster, "stuck", () => true);
    expect(stuck?.status).toMatchObject({ phase: "Failed", reason: "Evicted" });
  });

  it("is named where it is not there", async () => {
    await expect(cluster.node.faults.evict({ name: "nobody" })).rejects.toThrow(NoSuchPodError);
  });
});

describe("a container that is killed", () => {
  beforeEach(() => open());

  it("is started again in the same pod; its last state tells 137", async () => {
    const made = await createPod(cluster, agentPod("shot"));
    await awaitReady(cluster, "shot");
    await cluster.node.faults.killContainer({ name: "shot" });
    const pod = await awaitPod(cluster, "shot", (it) => isReady(it) && containerOf(it).restartCount === 1);
    expect(pod?.metadata.uid).toBe(made.metadata.uid);
    expect(containerOf(pod).lastTerminated).toMatchObject({ exitCode: 137, reason: "Error" });
    await expect(cluster.node.faults.killContainer({ name: "shot" }, "another")).rejects.toThrow(NoSuchPodError);
  });

  it("leaves in its log what it printed, and nothing of the node's own tools", async () => {
    const command = ["sh", "-c", "echo out; echo err >&2; exec sleep 1000"];
    const made = await createPod(cluster, agentPod("shot", { command, readinessProbe: undefined }));
    await awaitReady(cluster, "shot");
    const uid = made.metadata.uid ?? "";
    const text = async () => `${await readContainerLog(cluster.dataDir, uid, "agent")}`;
    await expect.poll(text).toContain("err");
    await cluster.node.faults.killContainer({ name: "shot" });
    await awaitPod(cluster, "shot", (it) => isReady(it) && containerOf(it).restartCount === 1);
    await expect.poll(async () => (await text()).match(/err/g)?.length).toBe(2);
    expect((await text()).trim().split("\n").sort()).toEqual(["err", "err", "out", "out"]);
  });

  it("again and again waits longer and longer", async () => {
    await createPod(cluster, agentPod("shot"));
    await awaitReady(cluster, "shot");
    await cluster.node.faults.killContainer({ name: "shot" });
    await awaitPod(cluster, "shot", (it) => isReady(it) && containerOf(it).restartCount === 1);
    await cluster.node.faults.killContainer({ name: "shot" });
    const pod = await awaitPod(cluster, "shot", (it) => containerOf(it).waitingFor === "CrashLoopBackOff");
    expect(containerOf(pod).waitingMessage).toMatch(
      /^back-off 0.2s restarting failed container=agent pod=shot_default/,
    );
    await awaitPod(cluster, "shot", (it) => isReady(it) && containerOf(it).restartCount === 2);
  });
});

describe("what rules hold up", () => {
  it("a pod that is not to be scheduled is Pending and says why, until the rule is taken back", async () => {
    const rule = Promise.withResolvers<void>();
    const beforeScheduling = async (_: KubeObject, say: (why: string) => void) => {
      say("0/1 nodes are available: a rule");
      await rule.promise;
    };
    await open({ faults: { ...noFaults, beforeScheduling } });
    const made = await createPod(cluster, agentPod("homeless"));
    const isUnplaced = (pod?: KubeObject) => conditionOf(pod, "PodScheduled").status === "False";
    const pod = await awaitPod(cluster, "homeless", isUnplaced);
    expect(conditionOf(pod, "PodScheduled")).toMatchObject({
      reason: "Unschedulable",
      message: "0/1 nodes are available: a rule",
    });
    expect(recordOf(pod?.spec).nodeName).toBeUndefined();
    expect(await awaitEvents(cluster, made, "FailedScheduling")).toEqual(["FailedScheduling"]);
    rule.resolve();
    const placed = await awaitReady(cluster, "homeless");
    expect(conditionOf(placed, "PodScheduled").status).toBe("True");
  });

  it("a pod that is slow to start is bound and ContainerCreating meanwhile, and can be deleted", async () => {
    const reached = Promise.withResolvers<void>();
    const beforeStart = async (_: KubeObject, signal: AbortSignal) => {
      reached.resolve();
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
    };
    await open({ faults: { ...noFaults, beforeStart } });
    const made = await createPod(cluster, agentPod("slow"));
    await reached.promise;
    const pod = await awaitPod(cluster, "slow", (it) => recordOf(it?.spec).nodeName !== undefined);
    expect(recordOf(pod?.status).phase).toBe("Pending");
    expect(processesWith(made.metadata.uid ?? "none")).toEqual([]);
    await deletePod(cluster, made);
    await awaitGone(cluster, "slow");
  });

  it("an image that cannot be pulled is tried again, and the pod runs when it can", async () => {
    let error: string | undefined = "the registry is away";
    await open({ faults: { ...noFaults, imagePullError: () => error } });
    const made = await createPod(cluster, agentPod("imageless"));
    const failing = await awaitPod(cluster, "imageless", (it) => containerOf(it).waitingFor === "ErrImagePull");
    expect(containerOf(failing).waitingMessage).toContain("the registry is away");
    const waiting = await awaitPod(cluster, "imageless", (it) => containerOf(it).waitingFor === "ImagePullBackOff");
    expect(recordOf(waiting?.status).phase).toBe("Pending");
    error = undefined;
    const pod = await awaitReady(cluster, "imageless");
    expect(containerOf(pod).restartCount).toBe(0);
    expect(await awaitEvents(cluster, made, "Started")).toContain("BackOff");
  });
});
