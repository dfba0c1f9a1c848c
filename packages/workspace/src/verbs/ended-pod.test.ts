import {
  collect,
  executionWish,
  openWish,
  patient,
  type Stage,
  settleTasks,
  stage,
  suspendWish,
  workspaceId,
} from "@holdfast/testkit";
import { beforeEach, describe, expect, it } from "vitest";
import { Workspace } from "../workspace.ts";

const id = workspaceId("demo");
const resumeWish = { readyTimeoutMs: 60_000 };
let on: Stage;
let workspace: Workspace;

beforeEach(async () => {
  on = stage();
  workspace = new Workspace(id, on.deps);
  await workspace.open(openWish, patient);
  on.cluster.plan.requests.length = 0;
  on.cluster.sent.length = 0;
});

const writes = () => on.cluster.plan.writes;
const pod = () => {
  const [first] = on.cluster.pods(id);
  if (!first) throw new Error("no pod stands");
  return first;
};
const end = (phase: "Failed" | "Succeeded" = "Failed") =>
  Object.assign(pod(), { phase, ready: false, lastTermination: "OOMKilled", ip: undefined });

describe("L42 a pod that ended by itself under a Running workspace", () => {
  it.each([
    ["a Resume of the handle that held it", "Failed", () => workspace.resume(resumeWish, patient)],
    ["an Open of the handle that held it", "Succeeded", () => workspace.open(openWish, patient)],
    ["an Open elsewhere", "Failed", () => new Workspace(id, on.deps).open(openWish, patient)],
  ] as const)("is deleted by %s, by its uid, and the next one is bound", async (_who, phase, start) => {
    const { uid, resourceVersion } = end(phase);
    const view = await start();
    expect(on.cluster.sent).toEqual([{ name: "namzu-ws-demo", uid, resourceVersion }]);
    expect(writes()).toEqual(["deletePod"]);
    expect(view).toMatchObject({ state: "running", identity: { podUid: pod().uid } });
    expect(pod().uid).not.toBe(uid);
  });

  it("is not called running by a view, though nobody has called it since", async () => {
    end();
    expect(await workspace.viewNow(patient)).toMatchObject({
      state: "not_ready",
      transition: { waitingFor: expect.stringContaining("OOMKilled") },
    });
  });

  it("is never deleted on our own initiative: not by a call, a view, a suspend or a silent adoption", async () => {
    end();
    await expect(collect(workspace.execute(executionWish(), patient))).rejects.toMatchObject({
      reason: "WORKSPACE_NOT_READY",
    });
    await workspace.viewNow(patient);
    await expect(new Workspace(id, on.deps).adopt(patient)).rejects.toMatchObject({ reason: "WORKSPACE_NOT_READY" });
    await workspace.suspend(suspendWish, patient);
    expect(on.cluster.plan.count("deletePod")).toBe(0);
  });

  it("is left to a holder with a higher epoch", async () => {
    end();
    on.cluster.stored(id).stamps.holderEpoch = "5";
    const fencing = { t: "epoch", epoch: 4 as never } as const;
    await expect(workspace.resume({ ...resumeWish, fencing }, patient)).rejects.toMatchObject({
      reason: "HOLDER_EPOCH_SUPERSEDED",
    });
    expect(writes()).toEqual([]);
  });

  it("is left alone where somebody took the workspace over between the look and the delete", async () => {
    end();
    const fencing = { t: "epoch", epoch: 4 as never } as const;
    on.cluster.stored(id).stamps.holderEpoch = "4";
    on.guests.shape = () => undefined;
    let reads = 0;
    const { readSandbox } = on.cluster;
    on.cluster.readSandbox = async (name, within) => {
      reads += 1;
      if (reads === 3) on.cluster.stored(id).stamps.holderEpoch = "9";
      return await readSandbox.call(on.cluster, name, within);
    };
    await expect(new Workspace(id, on.deps).open({ ...openWish, fencing }, patient)).rejects.toMatchObject({
      reason: "HOLDER_EPOCH_SUPERSEDED",
    });
    expect(on.cluster.plan.count("deletePod")).toBe(0);
  });

  it("that was replaced or changed meanwhile is left alone: the delete is conditional, and what stands is bound", async () => {
    end();
    const gate = on.cluster.plan.hold("deletePod");
    const resuming = workspace.resume(resumeWish, patient);
    await gate.reached;
    using events = workspace.events.subscribe();
    const { uid: ended } = pod();
    const other = on.cluster.replacePod(id);
    gate.release();
    expect((await on.clock.runUntilSettled(resuming)).identity.podUid).toBe(other.uid);
    expect(pod()).toMatchObject({ uid: other.uid, deleting: false });
    // L41: it was not this call that replaced it.
    expect(await events.next(AbortSignal.timeout(1_000))).toMatchObject({
      event: { t: "pod_replaced", previous: { podUid: ended }, current: { podUid: other.uid } },
    });
  });

  it.each(["reply-lost", "late"] as const)("is looked for after a delete without an answer (%s)", async (fault) => {
    end();
    on.cluster.plan.fail("deletePod", fault);
    const resuming = workspace.resume(resumeWish, patient).catch((error: unknown) => error);
    if (fault === "reply-lost") {
      expect(await resuming).toMatchObject({ state: "running" });
      return;
    }
    expect(await resuming).toMatchObject({ reason: "WORKSPACE_NOT_READY" });
    // It lands after the next pod stands: it names the dead one, and harms no other.
    const next = on.cluster.replacePod(id);
    expect(on.cluster.deliverLate()).toEqual(["refused"]);
    expect(pod()).toMatchObject({ uid: next.uid, deleting: false });
  });

  it("is said to the caller when the cluster refuses its delete", async () => {
    end();
    on.cluster.plan.fail("deletePod", "refuse");
    await expect(workspace.resume(resumeWish, patient)).rejects.toMatchObject({ reason: "CLUSTER_WRITE_REFUSED" });
  });

  it("is replaced once per call: a pod that ends again at once is told, not deleted for ever", async () => {
    end();
    const gate = on.cluster.plan.hold("deletePod");
    on.cluster.habits.podsStart = false;
    const resuming = workspace.resume(resumeWish, patient);
    await gate.reached;
    gate.release();
    await settleTasks();
    end();
    on.cluster.wake(id);
    await expect(resuming).rejects.toMatchObject({ reason: "WORKSPACE_NOT_READY" });
    expect(on.cluster.plan.count("deletePod")).toBe(1);
  });
});
