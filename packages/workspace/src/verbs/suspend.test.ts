import {
  collect,
  executionWish,
  openWish,
  patient,
  type Stage,
  settleTasks,
  silence,
  stage,
  suspendWish,
  workspaceId,
} from "@holdfast/testkit";
import { beforeEach, describe, expect, it } from "vitest";
import { Workspace } from "../workspace.ts";

const id = workspaceId("demo");
let on: Stage;
let workspace: Workspace;

beforeEach(async () => {
  on = stage();
  workspace = new Workspace(id, on.deps);
  await workspace.open(openWish, patient);
  on.cluster.plan.requests.length = 0;
  on.guests.calls.length = 0;
});

const writes = () => on.cluster.plan.writes;
const declined = { ...suspendWish, flush: { enabled: false, timeoutMs: 1 } };
const pod = () => {
  const [first] = on.cluster.pods(id);
  if (!first) throw new Error("no pod stands");
  return first;
};

describe("L25 suspended means seen gone", () => {
  it("is suspending, and refuses calls, until the pod is gone: a deletionTimestamp is not an end", async () => {
    on.cluster.habits.podsEnd = false;
    const suspending = workspace.suspend(suspendWish, patient);
    await settleTasks();
    expect(pod().deleting).toBe(true);
    expect(workspace.view()).toMatchObject({
      state: "suspending",
      transition: { cause: "suspendAccepted", waitingFor: "the end of pod namzu-ws-demo" },
    });
    await expect(collect(workspace.execute(executionWish(), patient))).rejects.toMatchObject({
      reason: "WORKSPACE_SUSPENDED",
      metadata: { noticed_by: "ADMISSION" },
    });
    on.cluster.endPods(id);
    expect((await suspending).view.state).toBe("suspended");
  });

  it("14 L9 leaves the origin as the call that opened it said", async () => {
    on.cluster.seed(workspaceId("other"));
    const adopted = new Workspace(workspaceId("other"), on.deps);
    expect((await adopted.open(openWish, patient)).origin).toBe("adopted_running");
    expect((await adopted.suspend(suspendWish, patient)).view.origin).toBe("adopted_running");
    expect((await workspace.suspend(suspendWish, patient)).view.origin).toBe("created");
  });

  it("counts a pod that has Succeeded or Failed as stopped", async () => {
    on.cluster.habits.podsEnd = false;
    const suspending = workspace.suspend(suspendWish, patient);
    await settleTasks();
    Object.assign(pod(), { phase: "Failed", ready: false });
    on.cluster.wake(id);
    expect((await suspending).view.state).toBe("suspended");
  });

  it("waits for the controller to have seen the suspend, even where no pod stands", async () => {
    on.cluster.habits.controller = false;
    on.cluster.stored(id).pods = [];
    const suspending = workspace.suspend(declined, patient);
    await settleTasks();
    expect(workspace.view().transition.waitingFor).toBe("the controller to see the suspend");
    on.cluster.observe(id);
    expect((await suspending).view.state).toBe("suspended");
  });

  it("does not believe that another live pod of this owner is nothing", async () => {
    on.cluster.habits.podsEnd = false;
    const suspending = workspace.suspend(suspendWish, patient);
    await settleTasks();
    on.cluster.replacePod(id);
    await settleTasks();
    expect(workspace.state.t).toBe("suspending");
    on.cluster.observe(id);
    on.cluster.endPods(id);
    await suspending;
  });

  it("looks again by itself, however silent the watch is", async () => {
    on.cluster.habits.podsEnd = false;
    const suspending = workspace.suspend(suspendWish, patient);
    await settleTasks();
    on.cluster.stored(id).pods = [];
    expect((await on.clock.runUntilSettled(suspending, 10_001)).view.state).toBe("suspended");
  });

  it("is SUSPEND_OVERTAKEN when somebody woke it meanwhile, and goes on as a running workspace", async () => {
    on.cluster.habits.podsEnd = false;
    const suspending = workspace.suspend(suspendWish, patient);
    await settleTasks();
    on.cluster.foreignMode(id, "Running");
    await expect(suspending).rejects.toMatchObject({ reason: "SUSPEND_OVERTAKEN" });
    expect(workspace.view().state).toBe("not_ready");
    on.cluster.endPods(id);
    expect(await collect(workspace.execute(executionWish(), patient))).toHaveLength(3);
    expect(writes()).toEqual(["setMode"]);
  });

  it("is not suspended when it was woken and the last look shows it", async () => {
    const last = on.cluster.plan.hold("readSandbox"); // The gate's read.
    const suspending = workspace.suspend(declined, patient);
    await last.reached;
    const first = on.cluster.plan.hold("readSandbox");
    last.release();
    await first.reached;
    const confirm = on.cluster.plan.hold("readSandbox");
    first.release();
    await confirm.reached;
    on.cluster.foreignMode(id, "Running");
    confirm.release();
    await expect(suspending).rejects.toMatchObject({ reason: "SUSPEND_OVERTAKEN" });
    expect(workspace.state.t).toBe("unbound");
  });

  it("past its deadline is SUSPEND_UNCONFIRMED with pod, grace and budget; the next one sends and waits again", async () => {
    on.cluster.habits.podsEnd = false;
    await expect(on.clock.runUntilSettled(workspace.suspend(suspendWish, patient))).rejects.toMatchObject({
      reason: "SUSPEND_UNCONFIRMED",
      metadata: { pod: "namzu-ws-demo", grace_period_seconds: "30", budget_ms: "120000", sent: "true" },
    });
    expect(workspace.state.t).toBe("suspending");
    const again = workspace.suspend(suspendWish, patient);
    await settleTasks();
    on.cluster.endPods(id);
    expect(await again).toMatchObject({ view: { state: "suspended" }, flush: { outcome: "skipped" } });
    expect(writes()).toEqual(["setMode", "setMode"]);
  });

  it("stamps the mode once, not with each repeat", async () => {
    on.cluster.habits.podsEnd = false;
    await on.clock.runUntilSettled(workspace.suspend(suspendWish, patient)).catch(() => undefined);
    const stamp = on.cluster.stored(id).stamps.modeChangedAt;
    const again = workspace.suspend(suspendWish, patient);
    await settleTasks();
    on.cluster.endPods(id);
    await again;
    expect(on.cluster.stored(id).stamps.modeChangedAt).toBe(stamp);
  });

  it("tolerates reads that fail while it waits", async () => {
    on.cluster.habits.podsEnd = false;
    const suspending = workspace.suspend(suspendWish, patient);
    await settleTasks();
    on.cluster.plan.fail("readSandbox", "unavailable", "stall");
    on.cluster.plan.fail("readPods", "unavailable");
    on.cluster.wake(id);
    await settleTasks();
    on.cluster.stored(id).pods = [];
    expect((await on.clock.runUntilSettled(suspending)).view.state).toBe("suspended");
  });
});

describe("L5 nothing to do", () => {
  it("is confirmed by one uncached read, and nothing is sent", async () => {
    await workspace.suspend(suspendWish, patient);
    on.cluster.plan.requests.length = 0;
    expect(await workspace.suspend(suspendWish, patient)).toMatchObject({
      view: { state: "suspended" },
      flush: { outcome: "skipped" },
    });
    expect(on.cluster.plan.requests).toEqual(["readSandbox"]);
  });

  it("runs whole when somebody wrote since, though it looks suspended", async () => {
    await workspace.suspend(suspendWish, patient);
    on.cluster.foreignMode(id, "Running");
    on.cluster.foreignMode(id, "Suspended");
    await workspace.suspend(suspendWish, patient);
    expect(writes()).toEqual(["setMode", "setMode"]);
  });

  it("runs whole when somebody woke it", async () => {
    await workspace.suspend(suspendWish, patient);
    on.cluster.foreignMode(id, "Running");
    expect((await workspace.suspend(suspendWish, patient)).view.state).toBe("suspended");
    expect(on.cluster.pods(id)).toEqual([]);
  });
});

describe("L24 a suspend whose condition failed", () => {
  it("starts over from the gate when somebody wrote meanwhile, in whatever state it was", async () => {
    const patch = on.cluster.plan.hold("setMode");
    const suspending = workspace.suspend(suspendWish, patient);
    await patch.reached;
    on.cluster.stored(id).stamps.writtenBy = "somebody";
    patch.release();
    expect((await on.clock.runUntilSettled(suspending)).view.state).toBe("suspended");
    expect(writes()).toEqual(["setMode", "setMode"]);
    expect(on.guests.count("health")).toBe(2); // The second round asks about the flush again.
  });

  it("is CLUSTER_WRITE_REFUSED when the object did not move, and the workspace still serves", async () => {
    on.cluster.stored(id).stamps.modeChangedAt = "2026-01-01T00:00:00.000Z";
    const patch = on.cluster.plan.hold("setMode");
    const suspending = workspace.suspend(suspendWish, patient);
    await patch.reached;
    // A test fails that no re-read can see: moved away for the patch, back for the read.
    const stamps = on.cluster.stored(id).stamps;
    const was = stamps.writtenBy;
    stamps.writtenBy = "elsewhere";
    const reread = on.cluster.plan.hold("readSandbox");
    patch.release();
    await reread.reached;
    stamps.writtenBy = was;
    reread.release();
    await expect(suspending).rejects.toMatchObject({ reason: "CLUSTER_WRITE_REFUSED" });
    expect(workspace.state.t).toBe("active");
    expect(await collect(workspace.execute(executionWish(), patient))).toHaveLength(3);
    expect(writes()).toEqual(["setMode"]);
  });

  it("L1 a refused suspend changes nothing here either", async () => {
    on.cluster.plan.fail("setMode", "refuse");
    await expect(workspace.suspend(suspendWish, patient)).rejects.toMatchObject({ reason: "CLUSTER_WRITE_REFUSED" });
    expect(workspace.state.t).toBe("active");
    expect(workspace.hasUnresolvedWrite).toBe(false);
    expect((await workspace.suspend(suspendWish, patient)).view.state).toBe("suspended");
  });

  it("L33 never patches a workspace that was deleted and created again", async () => {
    on.cluster.foreignDelete(id);
    on.cluster.seed(id);
    await expect(workspace.suspend(suspendWish, patient)).rejects.toMatchObject({ reason: "WORKSPACE_REPLACED" });
    expect(writes()).toEqual([]);
    expect(workspace.state).toEqual({ t: "gone", why: "replaced" });
  });

  it("is WORKSPACE_NOT_FOUND on one that was deleted, and WORKSPACE_DELETING on one that is on its way out", async () => {
    on.cluster.stored(id).deleting = true;
    await expect(workspace.suspend(suspendWish, patient)).rejects.toMatchObject({ reason: "WORKSPACE_DELETING" });
    expect(workspace.state.t).toBe("deleting");
    on.cluster.foreignDelete(id);
    await expect(workspace.suspend(suspendWish, patient)).rejects.toMatchObject({ reason: "WORKSPACE_NOT_FOUND" });
    expect(writes()).toEqual([]);
  });
});

describe("L26 the flush that belongs to a suspend", () => {
  it("is UNSUPPORTED where the guest cannot, and the suspend goes ahead", async () => {
    expect((await workspace.suspend(suspendWish, patient)).flush).toMatchObject({
      outcome: "unsupported",
      cause: expect.stringContaining("fsynced is safe"),
    });
  });

  it("is SKIPPED when declined, with no guest asked", async () => {
    expect((await workspace.suspend(declined, patient)).flush.outcome).toBe("skipped");
    expect(on.guests.calls).toEqual([]);
  });

  it.each([
    ["refuses the dial", "no-connection"],
    ["refuses the token", "token-refused"],
    ["is stopping", "retiring"],
  ] as const)("is UNREACHABLE with its cause when the guest %s, and the suspend goes ahead", async (_, why) => {
    on.guests.agent(pod().uid).unreached = why;
    const { flush, view } = await workspace.suspend(suspendWish, patient);
    expect(flush).toMatchObject({ outcome: "unreachable", cause: expect.stringContaining("was not asked") });
    expect(view.state).toBe("suspended");
  });

  it("is UNREACHABLE within seconds when the guest does not answer", async () => {
    on.guests.agent(pod().uid).health = silence;
    const { flush } = await on.clock.runUntilSettled(workspace.suspend(suspendWish, patient), 6_001);
    expect(flush.outcome).toBe("unreachable");
  });

  it("is UNREACHABLE when somebody else suspended first; L28 from suspending the guest is not asked", async () => {
    on.cluster.habits.podsEnd = false;
    on.cluster.foreignMode(id, "Suspended");
    const first = workspace.suspend({ ...suspendWish, stopTimeoutMs: 1_000 }, patient);
    await on.clock.runUntilSettled(first).catch(() => undefined);
    const second = workspace.suspend(suspendWish, patient);
    await settleTasks();
    on.cluster.endPods(id);
    expect((await second).flush.outcome).toBe("skipped");
    expect(on.guests.calls).toEqual([]);
  });

  it("is UNREACHABLE on a handle that sees a foreign suspend at its gate", async () => {
    on.cluster.foreignMode(id, "Suspended");
    const { flush, view } = await workspace.suspend(suspendWish, patient);
    expect([flush.outcome, view.state]).toEqual(["unreachable", "suspended"]);
    expect(on.guests.calls).toEqual([]);
  });
});

describe("L3 one suspend in flight", () => {
  it("is shared by overlapping callers, and outlives those that go away", async () => {
    on.cluster.habits.podsEnd = false;
    const leaving = new AbortController();
    const first = workspace.suspend(suspendWish, leaving.signal);
    const second = workspace.suspend(suspendWish, patient);
    await settleTasks();
    leaving.abort(new Error("gone"));
    await expect(first).rejects.toThrow("gone");
    on.cluster.endPods(id);
    expect((await second).view.state).toBe("suspended");
    expect(writes()).toEqual(["setMode"]);
  });

  it("is not begun for a caller that is gone already, nor is a delete", async () => {
    const gone = AbortSignal.abort(new Error("gone"));
    await expect(workspace.suspend(suspendWish, gone)).rejects.toThrow("gone");
    await expect(workspace.destroy({ ...suspendWish, deleteDisk: true }, gone)).rejects.toThrow("gone");
    await settleTasks();
    expect([on.cluster.plan.requests, on.guests.calls, workspace.state.t]).toEqual([[], [], "active"]);
  });

  it("is carried through when every caller has gone away", async () => {
    on.cluster.habits.podsEnd = false;
    const leaving = new AbortController();
    const only = workspace.suspend(suspendWish, leaving.signal);
    await settleTasks();
    leaving.abort(new Error("gone"));
    await expect(only).rejects.toThrow("gone");
    on.cluster.endPods(id);
    await settleTasks();
    expect(workspace.state.t).toBe("suspended");
  });

  it("runs to its longest joiner's deadline; a shorter one ends only its own wait", async () => {
    on.cluster.habits.podsEnd = false;
    const long = workspace.suspend({ ...suspendWish, stopTimeoutMs: 10_000 }, patient);
    const longer = workspace.suspend({ ...suspendWish, stopTimeoutMs: 60_000 }, patient);
    const short = workspace.suspend({ ...suspendWish, stopTimeoutMs: 1_000 }, patient);
    await expect(on.clock.runUntilSettled(short, 1_000)).rejects.toMatchObject({
      reason: "SUSPEND_UNCONFIRMED",
      metadata: { begun: "true", budget_ms: "1000" },
    });
    await expect(on.clock.runUntilSettled(long, 9_000)).rejects.toMatchObject({ reason: "SUSPEND_UNCONFIRMED" });
    expect(workspace.state.t).toBe("suspending");
    on.cluster.endPods(id);
    expect((await longer).view.state).toBe("suspended");
    expect(writes()).toEqual(["setMode"]);
  });

  it("refuses a joiner that wants a flush which the flight does not perform, and sends nothing for it", async () => {
    on.cluster.habits.podsEnd = false;
    const flight = workspace.suspend(declined, patient);
    await settleTasks();
    await expect(workspace.suspend(suspendWish, patient)).rejects.toMatchObject({
      reason: "FLUSH_UNCONFIRMED",
      metadata: { why: "suspend_already_in_flight" },
    });
    on.cluster.endPods(id);
    await flight;
    expect(writes()).toEqual(["setMode"]);
  });

  it("settles a destroy that joined and a resume that is queued, within the deadlines, when the cluster stalls", async () => {
    on.cluster.plan.fail("readSandbox", ...Array<"stall">(20).fill("stall"));
    const all = Promise.allSettled([
      workspace.suspend({ ...suspendWish, stopTimeoutMs: 5_000 }, patient),
      workspace.destroy({ ...suspendWish, stopTimeoutMs: 5_000, deleteDisk: false }, patient),
      workspace.resume({ readyTimeoutMs: 8_000 }, patient),
    ]);
    const reasons = (await on.clock.runUntilSettled(all, 20_000)).map(
      (one) => one.status === "rejected" && one.reason.reason,
    );
    expect(reasons).toEqual(["CLUSTER_UNAVAILABLE", "CLUSTER_UNAVAILABLE", "CLUSTER_UNAVAILABLE"]);
    expect(workspace.state.t).toBe("active");
    expect(writes()).toEqual([]);
  });

  it("a resume queued behind it wakes the workspace again", async () => {
    const suspending = workspace.suspend(suspendWish, patient);
    const resuming = workspace.resume({ readyTimeoutMs: 60_000 }, patient);
    await suspending;
    expect((await resuming).origin).toBe("resumed");
    expect(workspace.state.t).toBe("active");
  });
});

describe("suspend on a handle that knows nothing yet", () => {
  it("patches once, waits for the pod, and asks only a guest that proves itself", async () => {
    const fresh = new Workspace(id, on.deps);
    const { view, flush } = await fresh.suspend(suspendWish, patient);
    expect([view.state, flush.outcome]).toEqual(["suspended", "unsupported"]);
    expect(on.guests.calls.map(({ verb }) => verb)).toEqual(["probe", "health"]);
    expect(writes()).toEqual(["setMode"]);
  });

  it("leaves no handle when nothing stands", async () => {
    on.cluster.foreignDelete(id);
    const fresh = new Workspace(id, on.deps);
    await expect(fresh.suspend(suspendWish, patient)).rejects.toMatchObject({ reason: "WORKSPACE_NOT_FOUND" });
    expect(fresh.state.t).toBe("gone");
  });

  it("leaves no handle when it could not even look", async () => {
    on.cluster.plan.fail("readSandbox", "unavailable");
    const fresh = new Workspace(id, on.deps);
    await expect(fresh.suspend(suspendWish, patient)).rejects.toMatchObject({ reason: "CLUSTER_UNAVAILABLE" });
    expect(fresh.state.t).toBe("gone");
  });

  it("L16 records the claims' uids, and never overwrites the record of a disk that was replaced", async () => {
    await workspace.suspend(suspendWish, patient);
    const uid = on.cluster.claims.get("disk-namzu-ws-demo");
    expect(on.cluster.stored(id).stamps.volumeClaimUids).toBe(`disk-namzu-ws-demo=${uid}`);
    on.cluster.claims.set("disk-namzu-ws-demo", "an-empty-one");
    on.cluster.foreignMode(id, "Running");
    await new Workspace(id, on.deps).suspend(suspendWish, patient);
    expect(on.cluster.stored(id).stamps.volumeClaimUids).toBe(`disk-namzu-ws-demo=${uid}`);
  });
});

describe("a suspend of what was deleted meanwhile", () => {
  it("ends the handle: nothing stands, so nothing is taken back to running", async () => {
    const patch = on.cluster.plan.hold("setMode");
    const suspending = workspace.suspend(declined, patient);
    await patch.reached;
    on.cluster.foreignDelete(id);
    patch.release();
    await expect(suspending).rejects.toMatchObject({ reason: "WORKSPACE_NOT_FOUND" });
    expect(workspace.state).toEqual({ t: "gone", why: "absent" });
  });
});

describe("L3 a suspend that comes when a flight's time is over", () => {
  it("has its own flight and its own time", async () => {
    const patch = on.cluster.plan.hold("setMode");
    const first = workspace.suspend({ ...declined, stopTimeoutMs: 1_000 }, patient).catch((error: unknown) => error);
    await patch.reached;
    await on.clock.advance(1_001);
    const second = workspace.suspend({ ...declined, stopTimeoutMs: 60_000 }, patient);
    patch.release();
    expect(await first).toMatchObject({ reason: "SUSPEND_UNCONFIRMED" });
    expect((await second).view.state).toBe("suspended");
  });
});

describe("a suspend that broke off while it was being written", () => {
  it("leaves a handle that says suspending and can be suspended again", async () => {
    const { setMode } = on.cluster;
    on.cluster.setMode = async () => {
      throw new TypeError("a defect");
    };
    await expect(workspace.suspend(declined, patient)).rejects.toThrow("a defect");
    expect(workspace.state.t).toBe("suspending");
    on.cluster.setMode = setMode;
    expect((await workspace.suspend(declined, patient)).view.state).toBe("suspended");
  });
});
