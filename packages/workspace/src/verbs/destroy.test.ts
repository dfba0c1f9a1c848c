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
import { isHandleOver } from "../refusals.ts";
import { Workspace } from "../workspace.ts";

const id = workspaceId("demo");
const keep = { ...suspendWish, deleteDisk: false };
const remove = { ...suspendWish, deleteDisk: true };
let on: Stage;
let workspace: Workspace;

beforeEach(async () => {
  on = stage();
  workspace = new Workspace(id, on.deps);
  await workspace.open(openWish, patient);
  on.cluster.plan.requests.length = 0;
});

const writes = () => on.cluster.plan.writes;

describe("L4 destroy without delete_disk", () => {
  it("is a suspend: one patch, no DELETE", async () => {
    const { view, flush } = await workspace.destroy(keep, patient);
    expect([view?.state, flush.outcome]).toEqual(["suspended", "unsupported"]);
    expect(writes()).toEqual(["setMode"]);
  });

  it("joins a suspend in flight", async () => {
    const both = await Promise.all([workspace.suspend(suspendWish, patient), workspace.destroy(keep, patient)]);
    expect(both.map(({ view }) => view?.state)).toEqual(["suspended", "suspended"]);
    expect(writes()).toEqual(["setMode"]);
  });

  it("L5 of a workspace that is gone succeeds; Suspend and Resume there do not", async () => {
    on.cluster.foreignDelete(id);
    expect((await workspace.destroy(keep, patient)).view).toBeUndefined();
    expect((await workspace.destroy(keep, patient)).view).toBeUndefined();
    await expect(workspace.suspend(suspendWish, patient)).rejects.toMatchObject({ reason: "WORKSPACE_NOT_FOUND" });
    await expect(workspace.resume({ readyTimeoutMs: 1 }, patient)).rejects.toMatchObject({
      reason: "WORKSPACE_NOT_FOUND",
    });
    expect(writes()).toEqual([]);
  });
});

describe("L34 destroy with delete_disk", () => {
  it("resolves only when object, pod and claim have been seen gone", async () => {
    on.cluster.habits.podsEnd = false;
    const deleting = workspace.destroy(remove, patient);
    await settleTasks();
    expect(workspace.view()).toMatchObject({
      state: "deleting",
      transition: { waitingFor: expect.stringMatching(/object.*pod.*claim disk-namzu-ws-demo/) },
    });
    await expect(collect(workspace.execute(executionWish(), patient))).rejects.toMatchObject({
      reason: "WORKSPACE_DELETING",
    });
    on.cluster.collect("namzu-ws-demo");
    on.cluster.claims.set("disk-namzu-ws-demo", "still-terminating");
    await settleTasks();
    expect(workspace.state.t).toBe("deleting");
    on.cluster.claims.clear();
    await on.clock.runUntilSettled(deleting, 600);
    expect(workspace.state).toEqual({ t: "gone", why: "deleted" });
    expect(writes()).toEqual(["deleteSandbox"]);
  });

  it("says at once where it may not look whether anything is left, and stays deleting", async () => {
    on.cluster.plan.fail("readRemains", "forbidden");
    await expect(workspace.destroy(remove, patient)).rejects.toMatchObject({ reason: "CLUSTER_FORBIDDEN" });
    expect([workspace.state.t, writes()]).toEqual(["deleting", ["deleteSandbox"]]);
    expect((await on.clock.runUntilSettled(workspace.destroy(remove, patient))).view).toBeUndefined();
    expect(writes()).toEqual(["deleteSandbox"]);
  });

  it("looks again where it could not look whether anything is left", async () => {
    on.cluster.plan.fail("readRemains", "unavailable", "unavailable");
    await on.clock.runUntilSettled(workspace.destroy(remove, patient));
    expect([workspace.state.t, writes()]).toEqual(["gone", ["deleteSandbox"]]);
  });

  it("is done where somebody else deleted it before the DELETE arrived: one was sent, and none after it", async () => {
    const sending = on.cluster.plan.hold("deleteSandbox");
    const deleting = workspace.destroy(remove, patient);
    await sending.reached;
    on.cluster.foreignDelete(id);
    sending.release();
    await on.clock.runUntilSettled(deleting);
    expect([workspace.state, writes()]).toEqual([{ t: "gone", why: "deleted" }, ["deleteSandbox"]]);
  });

  it("does not ask the guest for a flush", async () => {
    on.guests.calls.length = 0;
    expect((await workspace.destroy(remove, patient)).flush.outcome).toBe("skipped");
    expect(on.guests.calls).toEqual([]);
  });

  it("sends nothing again once it is deleted", async () => {
    await workspace.destroy(remove, patient);
    await workspace.destroy(remove, patient);
    expect(writes()).toEqual(["deleteSandbox"]);
  });

  it("of one that is absent already, or deleted by somebody, is a success with no DELETE", async () => {
    on.cluster.foreignDelete(id);
    await workspace.destroy(remove, patient);
    await new Workspace(workspaceId("never"), on.deps).destroy(remove, patient);
    expect(writes()).toEqual([]);
  });

  it("of one that is on its way out already waits, and sends no DELETE of its own", async () => {
    on.cluster.stored(id).deleting = true;
    const deleting = workspace.destroy(remove, patient);
    await settleTasks();
    on.cluster.collect("namzu-ws-demo");
    await deleting;
    expect(writes()).toEqual([]);
  });

  it("refused drops the handle, sends no patch in its place, and shares its refusal with who joined", async () => {
    on.cluster.plan.fail("deleteSandbox", "refuse");
    const both = await Promise.allSettled([workspace.destroy(remove, patient), workspace.destroy(remove, patient)]);
    expect(both.map((one) => one.status === "rejected" && one.reason.reason)).toEqual([
      "CLUSTER_WRITE_REFUSED",
      "CLUSTER_WRITE_REFUSED",
    ]);
    expect(workspace.state).toEqual({ t: "gone", why: "delete_refused" });
    expect(writes()).toEqual(["deleteSandbox"]);
    await new Workspace(id, on.deps).destroy(remove, patient);
    expect(on.cluster.stands(id)).toBe(false);
  });

  it("L24 re-reads after a conflict and deletes exactly what it then read", async () => {
    const sending = on.cluster.plan.hold("deleteSandbox");
    const deleting = workspace.destroy(remove, patient);
    await sending.reached;
    on.cluster.stored(id).resourceVersion = "77";
    sending.release();
    await on.clock.runUntilSettled(deleting);
    expect(writes()).toEqual(["deleteSandbox", "deleteSandbox"]);
    expect(on.cluster.sent.at(-1)).toMatchObject({ resourceVersion: "77" });
  });

  it("L33 never deletes another workspace of that name", async () => {
    const sending = on.cluster.plan.hold("deleteSandbox");
    const deleting = workspace.destroy(remove, patient);
    await sending.reached;
    on.cluster.foreignDelete(id);
    const another = on.cluster.seed(id);
    sending.release();
    on.cluster.claims.clear();
    await on.clock.runUntilSettled(deleting);
    expect(on.cluster.stored(id).uid).toBe(another.uid);
    expect(writes()).toEqual(["deleteSandbox"]);
  });

  it("past its deadline is DELETE_UNCONFIRMED with what remains, and stays deleting", async () => {
    on.cluster.habits.podsEnd = false;
    await expect(on.clock.runUntilSettled(workspace.destroy(remove, patient))).rejects.toMatchObject({
      reason: "DELETE_UNCONFIRMED",
      metadata: { pods: "namzu-ws-demo", claims: "disk-namzu-ws-demo" },
    });
    expect(workspace.state.t).toBe("deleting");
    await expect(workspace.resume({ readyTimeoutMs: 1_000 }, patient)).rejects.toMatchObject({
      reason: "WORKSPACE_DELETING",
    });
  });

  it("asked for again, waits again for what is left, though the object itself is gone", async () => {
    on.cluster.habits.podsEnd = false;
    await on.clock.runUntilSettled(workspace.destroy(remove, patient)).catch(() => undefined);
    on.cluster.collect("namzu-ws-demo");
    on.cluster.claims.set("disk-namzu-ws-demo", "claim-1"); // Its finalizer still holds it.
    const again = workspace.destroy(remove, patient);
    await settleTasks();
    expect(workspace.view().transition.waitingFor).toBe("the end of claim disk-namzu-ws-demo");
    on.cluster.claims.clear();
    await on.clock.runUntilSettled(again);
    expect(workspace.state).toEqual({ t: "gone", why: "deleted" });
    expect(writes()).toEqual(["deleteSandbox"]);
  });

  it("unknown stays deleting until an explicit resume makes a write that defeats it", async () => {
    on.cluster.plan.fail("deleteSandbox", ...Array<"late">(50).fill("late"));
    const deleting = workspace.destroy({ ...remove, stopTimeoutMs: 1_000 }, patient);
    await expect(on.clock.runUntilSettled(deleting)).rejects.toMatchObject({ reason: "DELETE_UNCONFIRMED" });
    expect(workspace.state.t).toBe("deleting");
    expect(workspace.hasUnresolvedWrite).toBe(true);
    await expect(collect(workspace.execute(executionWish(), patient))).rejects.toMatchObject({
      reason: "WORKSPACE_DELETING",
    });
    expect((await workspace.resume({ readyTimeoutMs: 60_000 }, patient)).state).toBe("running");
    expect(workspace.hasUnresolvedWrite).toBe(false);
    expect(new Set(on.cluster.deliverLate())).toEqual(new Set(["refused"]));
    expect(on.cluster.stands(id)).toBe(true);
  });

  it("succeeds, with no DELETE, when somebody deleted it after a delete of ours had been defeated", async () => {
    on.cluster.plan.fail("deleteSandbox", ...Array<"late">(50).fill("late"));
    await on.clock
      .runUntilSettled(workspace.destroy({ ...remove, stopTimeoutMs: 1_000 }, patient))
      .catch(() => undefined);
    await workspace.resume({ readyTimeoutMs: 60_000 }, patient);
    on.cluster.plan.forget();
    on.cluster.plan.requests.length = 0;
    on.cluster.foreignDelete(id);
    await workspace.destroy(remove, patient);
    expect(workspace.state).toEqual({ t: "gone", why: "deleted" });
    expect(writes()).toEqual([]);
  });

  it("lets a destroy that keeps the disk, queued right behind it, succeed with one DELETE and no patch", async () => {
    const both = await Promise.all([workspace.destroy(remove, patient), workspace.destroy(keep, patient)]);
    expect(both.map(({ view }) => view)).toEqual([undefined, undefined]);
    expect(writes()).toEqual(["deleteSandbox"]);
  });

  it("queued behind it stops, or deletes, nothing of another of its name: that is for a new handle", async () => {
    await workspace.destroy(remove, patient);
    on.cluster.seed(id);
    for (const wish of [keep, remove]) {
      const again = workspace.destroy(wish, patient);
      await expect(again).rejects.toSatisfy(isHandleOver);
    }
    expect(writes()).toEqual(["deleteSandbox"]);
  });

  it("queued behind a stop that could not even look is told to call again, never that the workspace is gone", async () => {
    const fresh = new Workspace(id, on.deps);
    on.cluster.plan.fail("readSandbox", "unavailable");
    const calls = [fresh.suspend(suspendWish, patient), fresh.destroy(remove, patient)];
    const [suspended, removed] = await Promise.allSettled(calls);
    expect(suspended).toMatchObject({ reason: { reason: "CLUSTER_UNAVAILABLE" } });
    expect(removed).toMatchObject({ reason: { reason: "WORKSPACE_NOT_READY" } });
    await expect(fresh.destroy(keep, patient)).rejects.toMatchObject({ reason: "WORKSPACE_NOT_READY" });
    expect(writes()).toEqual([]);
  });

  it("deletes one that sleeps, from a handle that knows nothing yet", async () => {
    await workspace.suspend(suspendWish, patient);
    on.cluster.plan.requests.length = 0;
    await new Workspace(id, on.deps).destroy(remove, patient);
    expect(writes()).toEqual(["deleteSandbox"]);
  });
});
