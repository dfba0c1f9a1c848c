import { type SandboxUid, stopTimeoutDefaultMs } from "@holdfast/contract";
import { openWish, patient, type Stage, settleTasks, stage, workspaceId } from "@holdfast/testkit";
import { beforeEach, describe, expect, it } from "vitest";
import { WorkspaceRegistry } from "./registry.ts";

const id = workspaceId("demo");

let on: Stage;
let registry: WorkspaceRegistry;

beforeEach(() => {
  on = stage();
  registry = new WorkspaceRegistry(on.deps);
});

const suspend = (caller = patient) => registry.suspendObject(id, { stopTimeoutMs: stopTimeoutDefaultMs }, caller);
const remove = (expectedSandboxUid?: SandboxUid) =>
  registry.deleteObject(id, { expectedSandboxUid, stopTimeoutMs: stopTimeoutDefaultMs }, patient);
const requests = () => on.cluster.plan.requests;

describe("a suspend by object", () => {
  it("20 is one PATCH and a wait until the pod is gone: no template is read, nothing is created, deleted or dialled", async () => {
    on.cluster.habits.podsEnd = false;
    on.cluster.seed(id);
    const done = suspend();
    await settleTasks();
    expect(on.cluster.plan.writes).toEqual(["setMode"]);
    expect(await Promise.race([done.then(() => "suspended"), settleTasks().then(() => "waiting")])).toBe("waiting");
    on.cluster.endPods(id);
    const { summary } = await done;
    expect(summary).toMatchObject({ id, mode: "Suspended", sandboxUid: on.cluster.stored(id).uid });
    expect(summary?.modeChangedAt).toEqual(new Date(on.cluster.stored(id).stamps.modeChangedAt ?? ""));
    expect(on.cluster.plan.writes).toEqual(["setMode"]);
    expect(requests()).not.toContain("readTemplate");
    expect(on.guests.calls).toEqual([]);
  });

  it("21 is WORKSPACE_NOT_FOUND where nothing stands, and WORKSPACE_DELETING where it is being deleted; nothing is sent", async () => {
    await expect(suspend()).rejects.toMatchObject({ reason: "WORKSPACE_NOT_FOUND" });
    on.cluster.seed(id, { deleting: true });
    await expect(suspend()).rejects.toMatchObject({ reason: "WORKSPACE_DELETING" });
    expect(on.cluster.plan.writes).toEqual([]);
    expect(registry.size).toBe(0);
  });

  it("leaves no handle, whatever became of it", async () => {
    on.cluster.seed(id);
    await suspend();
    expect(registry.size).toBe(0);
    on.cluster.foreignMode(id, "Running");
    on.cluster.plan.fail("setMode", "refuse");
    await expect(suspend()).rejects.toMatchObject({ reason: "CLUSTER_WRITE_REFUSED" });
    expect(registry.size).toBe(0);
    on.cluster.habits.podsEnd = false;
    await expect(on.clock.runUntilSettled(suspend())).rejects.toMatchObject({ reason: "SUSPEND_UNCONFIRMED" });
    expect(registry.size).toBe(0);
    expect(on.cluster.subscriptions).toBe(0);
  });

  it("goes through the handle that is open here, which is suspended then; its guest is not asked", async () => {
    await registry.open(id, openWish, patient);
    const dialled = on.guests.calls.length;
    await suspend();
    expect(registry.size).toBe(1);
    expect((await registry.read(id, false, patient)).view.state).toBe("suspended");
    expect(on.guests.calls).toHaveLength(dialled);
    const sent = on.cluster.plan.writes.length;
    await suspend();
    expect(on.cluster.plan.writes).toHaveLength(sent);
  });

  it("keeps the handle of somebody who opens it meanwhile", async () => {
    on.cluster.seed(id);
    const gate = on.cluster.plan.hold("setMode");
    const suspended = suspend();
    await gate.reached;
    const opened = registry.open(id, openWish, patient);
    gate.release();
    await suspended;
    expect((await on.clock.runUntilSettled(opened)).origin).toBe("resumed");
    expect(registry.size).toBe(1);
  });

  it("goes on when its caller goes away: what was begun is finished and not begun twice", async () => {
    on.cluster.habits.podsEnd = false;
    on.cluster.seed(id);
    const caller = new AbortController();
    const done = suspend(caller.signal);
    await settleTasks();
    caller.abort(new Error("gone"));
    await expect(done).rejects.toThrow("gone");
    const joined = suspend();
    on.cluster.endPods(id);
    expect((await joined).summary).toMatchObject({ mode: "Suspended" });
    expect(on.cluster.plan.writes).toEqual(["setMode"]);
    expect(registry.size).toBe(0);
  });

  it("leaves no handle either when its only caller goes away", async () => {
    on.cluster.habits.podsEnd = false;
    on.cluster.seed(id);
    const caller = new AbortController();
    const done = suspend(caller.signal);
    await settleTasks();
    caller.abort(new Error("gone"));
    await expect(done).rejects.toThrow("gone");
    on.cluster.endPods(id);
    await settleTasks();
    expect(registry.size).toBe(0);
    expect(on.cluster.stored(id).mode).toBe("Suspended");
  });
});

describe("a delete by object", () => {
  it("32 is one DELETE, of a suspended workspace as of one that runs, and no other request that writes or dials", async () => {
    for (const mode of ["Suspended", "Running"] as const) {
      on.cluster.seed(id, { mode });
      requests().length = 0;
      expect(await remove()).toBe(true);
      expect(on.cluster.plan.writes).toEqual(["deleteSandbox"]);
      expect(requests()).not.toContain("readTemplate");
      expect(on.cluster.stands(id)).toBe(false);
      expect(registry.size).toBe(0);
    }
    expect(on.guests.calls).toEqual([]);
  });

  it("succeeds where nothing stands, and says that it deleted nothing", async () => {
    expect(await remove()).toBe(false);
    expect(await remove("some-uid" as SandboxUid)).toBe(false);
    expect(requests()).toEqual(["readSandbox", "readSandbox"]);
    expect(registry.size).toBe(0);
  });

  it("waits for the end of what somebody else deletes, and says that it deleted nothing", async () => {
    on.cluster.seed(id, { deleting: true });
    const done = remove();
    await settleTasks();
    on.cluster.collect("namzu-ws-demo");
    expect(await on.clock.runUntilSettled(done)).toBe(false);
    expect(on.cluster.plan.writes).toEqual([]);
  });

  it("deletes only the Sandbox that is expected: another one is WORKSPACE_REPLACED and stands", async () => {
    const { uid } = on.cluster.seed(id);
    await expect(remove("another" as SandboxUid)).rejects.toMatchObject({
      reason: "WORKSPACE_REPLACED",
      metadata: { expected: "another", actual: uid },
    });
    expect(on.cluster.plan.writes).toEqual([]);
    expect(await remove(uid)).toBe(true);
  });

  it("leaves an open handle as it is when another Sandbox is expected", async () => {
    await registry.open(id, openWish, patient);
    await expect(remove("another" as SandboxUid)).rejects.toMatchObject({ reason: "WORKSPACE_REPLACED" });
    expect((await registry.read(id, false, patient)).view.state).toBe("running");
  });

  it("deletes what is expected though the handle that is open here stands for an earlier one", async () => {
    await registry.open(id, openWish, patient);
    on.cluster.foreignDelete(id);
    const { uid } = on.cluster.seed(id);
    expect(await remove(uid)).toBe(true);
    expect(on.cluster.stands(id)).toBe(false);
  });

  it("shares one DELETE among those who mean the same, and sends none for those who mean another", async () => {
    on.cluster.habits.podsEnd = false;
    const { uid } = on.cluster.seed(id);
    const both = Promise.all([remove(uid), remove(uid)]);
    const other = remove("another" as SandboxUid);
    await settleTasks();
    on.cluster.collect("namzu-ws-demo");
    expect(await on.clock.runUntilSettled(both)).toEqual([true, true]);
    expect(await on.clock.runUntilSettled(other)).toBe(false); // By then nothing stands.
    expect(on.cluster.plan.writes).toEqual(["deleteSandbox"]);
  });

  it("ends the handle that is open here", async () => {
    await registry.open(id, openWish, patient);
    expect(await remove()).toBe(true);
    expect(registry.size).toBe(0);
    await expect(registry.read(id, false, patient)).rejects.toMatchObject({ reason: "WORKSPACE_NOT_FOUND" });
  });

  it("sends nothing to a workspace that another tool has fenced", async () => {
    on.cluster.seed(id, { stamps: { holderEpoch: "3" } });
    await expect(remove()).rejects.toMatchObject({ reason: "HOLDER_EPOCH_REQUIRED" });
    await expect(suspend()).rejects.toMatchObject({ reason: "HOLDER_EPOCH_REQUIRED" });
    expect(on.cluster.plan.writes).toEqual([]);
    expect(registry.size).toBe(0);
  });
});
