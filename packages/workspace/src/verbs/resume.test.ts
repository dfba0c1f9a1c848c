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
});

const writes = () => on.cluster.plan.writes;

describe("resume", () => {
  it("L5 on an active workspace is confirmed by reading object and pod, and nothing is sent", async () => {
    expect((await workspace.resume(resumeWish, patient)).state).toBe("running");
    expect(on.cluster.plan.requests).toEqual(["readSandbox", "readPods"]);
    expect(on.guests.count("probe")).toBe(1);
  });

  it("L5 runs whole when somebody suspended and woke it since", async () => {
    on.cluster.foreignMode(id, "Suspended");
    on.cluster.foreignMode(id, "Running");
    await workspace.resume(resumeWish, patient);
    expect(writes()).toEqual([]);
    expect(workspace.view().identity.podUid).toBe(on.cluster.pods(id)[0]?.uid);
  });

  it("L15 dials only the new pod, with its token, though the old one may still look ready", async () => {
    on.cluster.habits.podsEnd = false;
    const suspending = workspace.suspend({ ...suspendWish, stopTimeoutMs: 1_000 }, patient);
    await on.clock.runUntilSettled(suspending).catch(() => undefined);
    on.guests.calls.length = 0;
    const old = on.cluster.pods(id)[0]?.uid;
    const resuming = workspace.resume(resumeWish, patient);
    await settleTasks();
    expect(on.cluster.pods(id)[0]).toMatchObject({ uid: old, ready: true, deleting: true });
    expect(on.guests.calls).toEqual([]);
    on.cluster.endPods(id);
    const view = await resuming;
    expect(view.origin).toBe("resumed");
    expect(view.identity.podUid).not.toBe(old);
    expect(on.guests.calls.every(({ pod }) => pod !== old)).toBe(true);
  });

  it("L15 takes an excluded pod back when the controller, having seen the later Running, never ended it", async () => {
    on.cluster.habits.controller = false;
    const suspending = workspace.suspend({ ...suspendWish, stopTimeoutMs: 1_000 }, patient);
    await on.clock.runUntilSettled(suspending).catch(() => undefined);
    on.cluster.foreignMode(id, "Running");
    on.guests.calls.length = 0;
    const resuming = workspace.resume(resumeWish, patient);
    await settleTasks();
    expect(on.guests.calls).toEqual([]);
    on.cluster.observe(id);
    expect((await resuming).origin).toBe("adopted_running");
    expect(writes()).toEqual(["setMode"]);
  });

  it.each([
    [
      "with an unusable disk",
      { disk: { usable: false, why: "none", claims: ["disk"] } },
      {},
      "WORKSPACE_DISK_UNUSABLE",
    ],
    ["without the RuntimeClass that is configured", {}, { runtimeClassName: "kata" }, "WORKSPACE_MISMATCH"],
    ["that is being deleted", { deleting: true }, {}, "WORKSPACE_DELETING"],
    ["while ingress is to be verified", {}, { ingress: "verified" as never }, "INGRESS_UNVERIFIED"],
  ] as const)("L11 wakes none %s, and dials none that runs", async (_, seed, policy, reason) => {
    for (const mode of ["Suspended", "Running"] as const) {
      on = stage(policy);
      on.cluster.seed(id, { mode, ...seed });
      const refused = new Workspace(id, on.deps).resume(resumeWish, patient);
      await expect(refused).rejects.toMatchObject({ reason });
      expect([on.guests.calls, writes()]).toEqual([[], []]);
    }
  });

  it("L11 compares no template, which the call does not name", async () => {
    on.cluster.seed(id, { mode: "Suspended", template: "another" });
    expect((await new Workspace(id, on.deps).resume(resumeWish, patient)).template).toBe("another");
  });

  it("L30 binds one that somebody else woke without a patch and without a stamp", async () => {
    await workspace.suspend(suspendWish, patient);
    on.cluster.foreignMode(id, "Running");
    on.cluster.plan.requests.length = 0;
    expect((await workspace.resume(resumeWish, patient)).origin).toBe("adopted_running");
    expect(writes()).toEqual([]);
  });

  it("L30 defeats an unresolved suspend of ours: its late arrival changes nothing", async () => {
    on.cluster.plan.fail("setMode", ...Array<"late">(50).fill("late"));
    const suspending = workspace.suspend({ ...suspendWish, stopTimeoutMs: 1_000 }, patient);
    await expect(on.clock.runUntilSettled(suspending)).rejects.toMatchObject({ reason: "SUSPEND_UNCONFIRMED" });
    expect(workspace.state.t).toBe("suspending");
    expect(workspace.hasUnresolvedWrite).toBe(true);
    await settleTasks();

    // The faults that are left would hit the resume: a stage of its own has none.
    const plan = on.cluster.plan;
    plan.forget();
    const view = await on.clock.runUntilSettled(workspace.resume(resumeWish, patient));
    expect(view).toMatchObject({ state: "running", origin: "adopted_running" });
    expect(workspace.hasUnresolvedWrite).toBe(false);
    const stamp = on.cluster.stored(id).stamps.modeChangedAt;
    expect(stamp).toBeUndefined(); // Defeating writes no stamp: the mode did not move.
    expect(new Set(on.cluster.deliverLate())).toEqual(new Set(["refused"]));
    expect(on.cluster.stored(id).mode).toBe("Running");
    expect(await collect(workspace.execute(executionWish(), patient))).toHaveLength(3);
  });

  it("L6 that fails leaves what a re-read shows", async () => {
    await workspace.suspend(suspendWish, patient);
    on.cluster.plan.fail("setMode", "refuse");
    await expect(workspace.resume(resumeWish, patient)).rejects.toMatchObject({ reason: "CLUSTER_WRITE_REFUSED" });
    expect(workspace.state.t).toBe("suspended");
    on.cluster.habits.podsStart = false;
    const failing = workspace.resume({ ...resumeWish, onStartFailure: "leave" }, patient);
    await expect(on.clock.runUntilSettled(failing)).rejects.toMatchObject({ reason: "START_TIMEOUT" });
    expect(workspace.view()).toMatchObject({
      state: "not_ready",
      transition: { cause: "startFailed", waitingFor: expect.stringContaining("never became ready") },
    });
  });

  it("L19 keeps what the Open said about failed starts, unless told otherwise", async () => {
    const other = workspaceId("other");
    const leaving = new Workspace(other, on.deps);
    await leaving.open({ ...openWish, onStartFailure: "leave" }, patient);
    await leaving.suspend(suspendWish, patient);
    on.cluster.habits.podsStart = false;
    await on.clock.runUntilSettled(leaving.resume(resumeWish, patient)).catch(() => undefined);
    expect(on.cluster.stored(other).mode).toBe("Running");
    await leaving.suspend(suspendWish, patient);
    const told = leaving.resume({ ...resumeWish, onStartFailure: "suspend_if_woken" }, patient);
    await on.clock.runUntilSettled(told).catch(() => undefined);
    expect(on.cluster.stored(other).mode).toBe("Suspended");
  });

  it("sends nothing on a failure when somebody else had woken it", async () => {
    await workspace.suspend(suspendWish, patient);
    on.cluster.foreignMode(id, "Running");
    on.cluster.plan.requests.length = 0;
    on.cluster.plan.fail("readPods", "forbidden");
    await expect(workspace.resume(resumeWish, patient)).rejects.toMatchObject({ reason: "CLUSTER_FORBIDDEN" });
    expect(writes()).toEqual([]);
    expect(workspace.state.t).toBe("unbound");
  });

  it("is WORKSPACE_SUSPENDED when somebody suspends while it waits", async () => {
    await workspace.suspend(suspendWish, patient);
    on.cluster.habits.podsStart = false;
    const resuming = workspace.resume(resumeWish, patient);
    await settleTasks();
    on.cluster.foreignMode(id, "Suspended");
    await expect(resuming).rejects.toMatchObject({ reason: "WORKSPACE_SUSPENDED", metadata: { noticed_by: "START" } });
    expect(workspace.state.t).toBe("suspended");
  });

  it("on a handle that knows nothing yet wakes what stands, and never creates", async () => {
    await workspace.suspend(suspendWish, patient);
    expect((await new Workspace(id, on.deps).resume(resumeWish, patient)).origin).toBe("resumed");
    const absent = new Workspace(workspaceId("absent"), on.deps);
    await expect(absent.resume(resumeWish, patient)).rejects.toMatchObject({ reason: "WORKSPACE_NOT_FOUND" });
    expect(absent.state.t).toBe("gone");
    expect(on.cluster.plan.count("createSandbox")).toBe(0);
  });

  it("L16 is WORKSPACE_REPLACED when the disk's claim was replaced while it slept", async () => {
    await workspace.suspend(suspendWish, patient);
    on.cluster.claims.set("disk-namzu-ws-demo", "an-empty-one");
    on.cluster.plan.requests.length = 0;
    await expect(workspace.resume(resumeWish, patient)).rejects.toMatchObject({ reason: "WORKSPACE_REPLACED" });
    expect(writes()).toEqual([]);
    expect(workspace.state.t).toBe("suspended");
  });

  it("L40 shows the boot id only beside the pod that reported it", async () => {
    const before = workspace.view().identity;
    await workspace.suspend(suspendWish, patient);
    expect(workspace.view().identity).toMatchObject({
      podUid: undefined,
      bootId: undefined,
      sandboxUid: before.sandboxUid,
    });
    const after = (await workspace.resume(resumeWish, patient)).identity;
    expect(after.bootId).toBe(`boot-of-${after.podUid}`);
    expect(after.podUid).not.toBe(before.podUid);
    expect(after.sandboxUid).toBe(before.sandboxUid);
  });
});

describe("adopt", () => {
  it("never wakes, never creates, never stamps", async () => {
    await workspace.suspend(suspendWish, patient);
    on.cluster.plan.requests.length = 0;
    const sleeping = new Workspace(id, on.deps);
    await expect(sleeping.adopt(patient)).rejects.toMatchObject({
      reason: "WORKSPACE_SUSPENDED",
      metadata: { noticed_by: "ADMISSION" },
    });
    const absent = new Workspace(workspaceId("absent"), on.deps);
    await expect(absent.adopt(patient)).rejects.toMatchObject({ reason: "WORKSPACE_NOT_FOUND" });
    expect([sleeping.state.t, absent.state.t]).toEqual(["gone", "gone"]);
    expect(writes()).toEqual([]);
  });

  it("takes on a running one as ADOPTED_RUNNING with no write", async () => {
    const second = new Workspace(id, on.deps);
    await second.adopt(patient);
    expect(second.view()).toMatchObject({ state: "running", origin: "adopted_running" });
    expect(writes()).toEqual([]);
  });

  it.each([
    [
      "with an unusable disk",
      { disk: { usable: false, why: "none", claims: ["disk"] } },
      {},
      "WORKSPACE_DISK_UNUSABLE",
    ],
    ["without the RuntimeClass that is configured", {}, { runtimeClassName: "kata" }, "WORKSPACE_MISMATCH"],
    ["that is being deleted", { deleting: true }, {}, "WORKSPACE_DELETING"],
    ["whose epoch cannot be read", { stamps: { holderEpoch: "latest" } }, {}, "HOLDER_EPOCH_UNREADABLE"],
    [
      "on another disk than it was left with",
      { stamps: { volumeClaimUids: "disk-namzu-ws-demo=old" } },
      {},
      "WORKSPACE_REPLACED",
    ],
    ["while ingress is to be verified", {}, { ingress: "verified" as never }, "INGRESS_UNVERIFIED"],
  ] as const)(
    "L11 L16 takes on none %s: its guest is not dialled, nothing is written",
    async (_, seed, policy, reason) => {
      on = stage(policy);
      on.cluster.seed(id, seed);
      const refused = new Workspace(id, on.deps);
      await expect(refused.adopt(patient)).rejects.toMatchObject({ reason });
      expect([on.guests.calls, writes()]).toEqual([[], []]);
      expect(refused.state.t).toBe(reason === "WORKSPACE_DELETING" ? "deleting" : "gone");
    },
  );

  it("L11 compares no template, which the call does not name", async () => {
    on.cluster.stored(id).template = "another";
    const second = new Workspace(id, on.deps);
    await second.adopt(patient);
    expect(second.view()).toMatchObject({ state: "running", template: "another" });
  });

  it("waits at most 10 s for a bindable pod, then says what is missing", async () => {
    for (const pod of on.cluster.pods(id)) Object.assign(pod, { ready: false, problem: "crash loop: exit 1" });
    const second = new Workspace(id, on.deps);
    await expect(on.clock.runUntilSettled(second.adopt(patient), 10_000)).rejects.toMatchObject({
      reason: "WORKSPACE_NOT_READY",
      metadata: { problem: "crash_loop" },
    });
    expect(second.state.t).toBe("gone");
  });
});
