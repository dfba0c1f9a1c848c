import { holderEpochFrom } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
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
import type { StartFencing, StopFencing } from "./fencing.ts";

const id = workspaceId("demo");
const resumeWish = { readyTimeoutMs: 60_000 };
const takeOver: StartFencing = { t: "take_over" };
const ignoring: StopFencing = { t: "ignore_fence", by: "10.0.0.7:5" };
let on: Stage;
/** Two replicas: each has a handle of its own. */
let a: Workspace;
let b: Workspace;

beforeEach(() => {
  on = stage();
  a = new Workspace(id, on.deps);
  b = new Workspace(id, on.deps);
});

const at = (epoch: number) => ({ t: "epoch", epoch: holderEpochFrom(epoch) }) as const;
const open = (workspace: Workspace, fencing?: StartFencing) => workspace.open({ ...openWish, fencing }, patient);
const resume = (workspace: Workspace, fencing?: StartFencing) => workspace.resume({ ...resumeWish, fencing }, patient);
const suspend = (workspace: Workspace, fencing?: StopFencing) =>
  workspace.suspend({ ...suspendWish, fencing }, patient);
const remove = (workspace: Workspace, fencing?: StopFencing) =>
  workspace.destroy({ ...suspendWish, deleteDisk: true, fencing }, patient);
const stored = () => on.cluster.stored(id).stamps.holderEpoch;
const writes = () => on.cluster.plan.writes;
const fences = () => on.guests.calls.filter(({ verb }) => verb === "fence").length;
const guestEpoch = () => on.guests.agent(on.cluster.pods(id)[0]?.uid as never).holderEpoch;
const superseded = (mine: number, current: number) => ({
  reason: "HOLDER_EPOCH_SUPERSEDED",
  metadata: { mine: String(mine), stored: String(current) },
});

describe("L20 an epoch is stored by the write that the call makes anyway", () => {
  it("73 an open that creates puts it into the POST itself, and answers once the guest has it", async () => {
    const view = await open(a, at(4));
    expect(on.cluster.sent).toMatchObject([{ createdBy: expect.any(String), epoch: 4 }]);
    expect([view.holderEpoch, stored(), guestEpoch()]).toEqual([4, "4", 4]);
    expect(view.transition.epoch).toBe(4);
  });

  it("a call without one stores none, and the guest is not asked to fence", async () => {
    const view = await open(a);
    expect([view.holderEpoch, stored(), fences()]).toEqual([0, undefined, 0]);
    expect(view.transition.epoch).toBeUndefined();
  });

  it("a present 0 is a fenced write that stores 0", async () => {
    await open(a, at(0));
    expect(stored()).toBe("0");
    await resume(a, at(0));
    expect(writes()).toEqual(["createSandbox"]);
  });

  it("72 an adopt of a running object is one patch: no mode, no stamp of a change", async () => {
    on.cluster.seed(id, { stamps: { modeChangedAt: "2026-01-01T00:00:00.000Z" } });
    const { generation } = on.cluster.stored(id);
    const view = await open(a, at(5));
    expect(view.origin).toBe("adopted_running");
    expect(writes()).toEqual(["setMode"]);
    expect(on.cluster.stored(id)).toMatchObject({
      generation,
      mode: "Running",
      stamps: { holderEpoch: "5", modeChangedAt: "2026-01-01T00:00:00.000Z" },
    });
  });

  it("a wake stores it with the mode, a suspend too, also where it is suspended already", async () => {
    on.cluster.seed(id, { mode: "Suspended", stamps: { holderEpoch: "2" } });
    await open(a, at(3));
    expect([stored(), writes().length]).toEqual(["3", 1]);
    await suspend(a, at(4));
    expect([stored(), writes().length, a.state.t]).toEqual(["4", 2, "suspended"]);
    await suspend(a, at(4));
    expect(writes()).toHaveLength(2);
    const { modeChangedAt } = on.cluster.stored(id).stamps;
    await suspend(a, at(5));
    expect([stored(), writes().length, a.state.t]).toEqual(["5", 3, "suspended"]);
    expect(on.cluster.stored(id).stamps.modeChangedAt).toBe(modeChangedAt);
  });

  it("a higher one on an open workspace is stored and told to the guest; nobody's command ends for it", async () => {
    await open(a, at(3));
    const { bootId } = a.view().identity;
    const view = await open(a, at(7));
    expect(view).toMatchObject({ origin: "already_open", state: "running", holderEpoch: 7 });
    expect([stored(), guestEpoch(), a.view().identity.bootId]).toEqual(["7", 7, bootId]);
    expect(on.guests.closed).toEqual([]);
    expect(on.guests.count("probe")).toBe(1);
  });

  it("is never the handle's: the next caller without one is refused, and so is one with a lower one", async () => {
    await open(a, at(5));
    await expect(suspend(a)).rejects.toMatchObject({ reason: "HOLDER_EPOCH_REQUIRED", metadata: { stored: "5" } });
    await expect(suspend(a, at(4))).rejects.toMatchObject(superseded(4, 5));
    await expect(resume(a)).rejects.toMatchObject({ reason: "HOLDER_EPOCH_REQUIRED" });
    expect([a.state.t, writes()]).toEqual(["active", ["createSandbox"]]);
  });
});

describe("L20 take_over", () => {
  it("takes the stored number + 1, on what is absent, running, suspended and open here", async () => {
    expect((await open(a, takeOver)).holderEpoch).toBe(1);
    expect((await open(a, takeOver)).holderEpoch).toBe(2);
    expect((await open(b, takeOver)).holderEpoch).toBe(3);
    await suspend(b, at(3));
    expect((await resume(b, takeOver)).holderEpoch).toBe(4);
    expect([stored(), guestEpoch()]).toEqual(["4", 4]);
  });

  it("counts anew on every reading: two that race get two numbers", async () => {
    await open(a, at(1));
    const held = on.cluster.plan.hold("setMode");
    const first = open(a, takeOver);
    await held.reached;
    const second = await open(b, takeOver);
    held.release();
    const numbers = [(await on.clock.runUntilSettled(first)).holderEpoch, second.holderEpoch];
    expect(numbers).toEqual([3, 2]);
  });

  it.each(["reply-lost", "late", "never-arrived"] as const)(
    "whose write got no answer (%s) is not claimed from a re-read but taken again",
    async (fault) => {
      on.cluster.seed(id, { mode: "Suspended", stamps: { holderEpoch: "5" } });
      on.cluster.plan.fail("setMode", fault);
      const view = await on.clock.runUntilSettled(open(a, takeOver));
      expect(view).toMatchObject({ origin: "resumed", holderEpoch: fault === "reply-lost" ? 7 : 6 });
      on.cluster.deliverLate();
      await settleTasks();
      expect([stored(), guestEpoch()]).toEqual([String(view.holderEpoch), view.holderEpoch]);
      expect((await on.clock.runUntilSettled(open(b, takeOver))).holderEpoch).toBe((view.holderEpoch ?? 0) + 1);
    },
  );

  it("whose first write landed unanswered and whose second never arrived is sent until it is known: nothing is claimed twice", async () => {
    on.cluster.seed(id, { mode: "Suspended", stamps: { holderEpoch: "5" } });
    on.cluster.plan.fail("setMode", "reply-lost", "never-arrived");
    const view = await on.clock.runUntilSettled(open(a, takeOver));
    expect([view.holderEpoch, stored(), writes().length]).toEqual([7, "7", 3]);
  });

  it("whose POST got no answer is taken again on what stands", async () => {
    on.cluster.plan.fail("createSandbox", "reply-lost");
    const view = await on.clock.runUntilSettled(open(a, takeOver));
    expect([view.origin, view.holderEpoch, stored()]).toEqual(["created", 2, "2"]);
  });

  it("of the highest number there is is refused, and nothing is sent", async () => {
    on.cluster.seed(id, { stamps: { holderEpoch: String(Number.MAX_SAFE_INTEGER) } });
    await expect(open(a, takeOver)).rejects.toMatchObject({ reason: "INVALID_REQUEST" });
    expect(writes()).toEqual([]);
  });
});

describe("L21 the fence", () => {
  it("66 A opened at 4, B adopted at 5: A is refused with both numbers, B works and can suspend", async () => {
    await open(a, at(4));
    await open(b, at(5));
    const pod = on.cluster.pods(id)[0]?.uid;
    await expect(suspend(a, at(4))).rejects.toMatchObject({
      reason: "HOLDER_EPOCH_SUPERSEDED",
      metadata: { operation: "SuspendWorkspace", workspace_id: id, sandbox: "namzu-ws-demo", mine: "4", stored: "5" },
    });
    expect([stored(), on.cluster.stored(id).mode, on.cluster.pods(id)[0]?.uid]).toEqual(["5", "Running", pod]);
    expect(await collect(b.execute(executionWish(), patient, holderEpochFrom(5)))).toHaveLength(3);
    await suspend(b, at(5));
    expect(b.state.t).toBe("suspended");
  });

  it("67 an open at 4 of what is suspended at 5 is refused before any patch: no pod is started", async () => {
    on.cluster.seed(id, { mode: "Suspended", stamps: { holderEpoch: "5" } });
    await expect(open(a, at(4))).rejects.toMatchObject(superseded(4, 5));
    expect([writes(), on.cluster.pods(id)]).toEqual([[], []]);
  });

  it("78 an epoch that is no number is refused whatever the call carries, and never overwritten", async () => {
    on.cluster.seed(id, { stamps: { holderEpoch: "latest" } });
    const unreadable = { reason: "HOLDER_EPOCH_UNREADABLE", metadata: { stored: "latest" } };
    for (const call of [
      () => open(a, at(9)),
      () => open(a, takeOver),
      () => resume(a, at(9)),
      () => suspend(a, at(9)),
      () => suspend(a, ignoring),
      () => remove(a, at(9)),
      () => remove(a, ignoring),
    ]) {
      await expect(call()).rejects.toMatchObject(unreadable);
      a = new Workspace(id, on.deps);
    }
    expect(writes()).toEqual([]);
    expect(stored()).toBe("latest");
  });

  it("ignore_fence acts on what is stored as read, leaves it as it is, and names the caller in the log", async () => {
    await open(a, at(5));
    await suspend(a, ignoring);
    expect([a.state.t, stored()]).toEqual(["suspended", "5"]);
    expect(on.cluster.sent.at(-1)).toMatchObject({ mode: "Suspended", epoch: undefined });
    expect(on.logged).toContainEqual({
      level: "warn",
      facts: { workspaceId: id, by: "10.0.0.7:5", stored: "5" },
      message: "a call acts on this workspace ignoring its fence",
    });
    await remove(b, ignoring);
    expect(on.cluster.stands(id)).toBe(false);
  });

  it("ignore_fence names each caller in the log, also one that came while another's suspend ran", async () => {
    await open(a, at(5));
    await Promise.all([suspend(a, ignoring), suspend(a, { t: "ignore_fence", by: "10.0.0.8:6" })]);
    const named = on.logged.map(({ facts }) => (facts as { by?: string }).by).filter((by) => by !== undefined);
    expect(named).toEqual(["10.0.0.7:5", "10.0.0.8:6"]);
    expect(writes()).toEqual(["createSandbox", "setMode"]);
  });

  it("ignore_fence is beaten by a take-over between its reading and its patch, and decides again on what stands then", async () => {
    await open(a, at(5));
    const held = on.cluster.plan.hold("setMode");
    const suspending = suspend(a, ignoring);
    await held.reached;
    on.cluster.foreignFence(id, 6);
    held.release();
    await on.clock.runUntilSettled(suspending);
    expect([stored(), on.cluster.stored(id).mode]).toEqual(["6", "Suspended"]);
  });
});

describe("L20 a take-over whose start then fails", () => {
  it.each([
    ["of a workspace that stands", () => on.cluster.seed(id, { stamps: { holderEpoch: "5" } }), "6"],
    ["of one that it created", () => undefined, "1"],
  ])("%s says which number it took: it holds the workspace", async (_what, prepare, epoch) => {
    on.cluster.habits.podsStart = false;
    prepare();
    const wish = { ...openWish, readyTimeoutMs: 1_000, fencing: { t: "take_over" } } as const;
    await expect(on.clock.runUntilSettled(a.open(wish, patient))).rejects.toMatchObject({
      reason: "START_TIMEOUT",
      metadata: { epoch },
    });
    expect(stored()).toBe(epoch);
  });

  it("says none where nothing was stored", async () => {
    on.cluster.plan.fail("createSandbox", "refuse");
    const error = await a
      .open({ ...openWish, fencing: { t: "take_over" } }, patient)
      .catch((caught: unknown) => caught);
    expect(error).toMatchObject({ reason: "CLUSTER_WRITE_REFUSED" });
    expect(error).not.toHaveProperty("metadata.epoch");
  });
});

describe("L23 a stop whose fence refuses it", () => {
  it("leaves everything as it was: the state, the pod, commands that run", async () => {
    await open(a, at(5));
    for (const stop of [() => suspend(a, at(4)), () => remove(a, at(4)), () => suspend(a)]) {
      await expect(stop()).rejects.toMatchObject({ reason: expect.stringMatching(/^HOLDER_EPOCH/) });
    }
    expect([a.state.t, writes(), on.guests.closed]).toEqual(["active", ["createSandbox"], []]);
    expect(on.guests.count("releaseSessions")).toBe(0);
    expect(await collect(a.execute(executionWish(), patient, holderEpochFrom(5)))).toHaveLength(3);
  });

  it("ends nobody's start, and does not wait for it", async () => {
    on.cluster.seed(id, { stamps: { holderEpoch: "5" } });
    on.cluster.habits.podsStart = false;
    on.cluster.replacePod(id).ready = false;
    const opening = open(a, at(5));
    await settleTasks();
    await expect(suspend(a, at(4))).rejects.toMatchObject(superseded(4, 5));
    await expect(remove(a)).rejects.toMatchObject({ reason: "HOLDER_EPOCH_REQUIRED" });
    expect(a.state.t).toBe("opening");
    on.cluster.replacePod(id);
    expect(await on.clock.runUntilSettled(opening)).toMatchObject({ state: "running", holderEpoch: 5 });
  });

  it("whose fence cannot be read waits for its turn, and the start goes on", async () => {
    on.cluster.habits.podsStart = false;
    const opening = open(a, at(5));
    await settleTasks();
    on.cluster.plan.fail("readSandbox", "unavailable");
    const suspending = suspend(a, at(5));
    await settleTasks();
    expect(a.state.t).toBe("opening");
    on.cluster.replacePod(id);
    expect((await opening).state).toBe("running");
    await suspending;
    expect(a.state.t).toBe("suspended");
  });
});

describe("L3 flights", () => {
  it("of another epoch do not join: each is judged by its own", async () => {
    await open(a, at(5));
    on.cluster.habits.podsEnd = false;
    const mine = [suspend(a, at(5)), suspend(a, at(5))];
    const others = [suspend(a, at(4)), suspend(a)];
    const refused = Promise.allSettled(others);
    await settleTasks();
    expect(writes().filter((verb) => verb === "setMode")).toHaveLength(1);
    on.cluster.endPods(id);
    await Promise.all(mine);
    expect((await refused).map((ending) => (ending as PromiseRejectedResult).reason)).toMatchObject([
      superseded(4, 5),
      { reason: "HOLDER_EPOCH_REQUIRED" },
    ]);
    expect(a.state.t).toBe("suspended");
  });

  it("of a delete under another epoch do not join either", async () => {
    await open(a, at(5));
    const held = on.cluster.plan.hold("deleteSandbox");
    const mine = remove(a, at(5));
    await held.reached;
    const other = remove(a, at(4));
    const refused = expect(other).rejects.toMatchObject(superseded(4, 5));
    held.release();
    expect((await mine).deleted).toBe(true);
    // By its turn nothing stands: gone is gone, whoever asked.
    await Promise.race([refused, other]);
  });
});

describe("L24 a write that another holder's beats", () => {
  it("a suspend is refused when the epoch moved between gate and patch, though nothing else did", async () => {
    await open(a, at(4));
    const held = on.cluster.plan.hold("setMode");
    const suspending = suspend(a, at(4));
    await held.reached;
    on.cluster.foreignFence(id, 5);
    held.release();
    await expect(on.clock.runUntilSettled(suspending)).rejects.toMatchObject(superseded(4, 5));
    expect([a.state.t, on.cluster.stored(id).mode]).toEqual(["active", "Running"]);
  });

  it.each(["a 422 whose test failed, or a 409", "a 500 that says so"])(
    "B82 a suspend that is answered with %s is superseded after a fresh read; it is sent once, and the epoch never goes back",
    async (answer) => {
      await open(a, at(7));
      const held = on.cluster.plan.hold("setMode");
      // As the cluster's client tells it: the outcome of a 500 is not known.
      if (answer.startsWith("a 500")) on.cluster.plan.fail("setMode", "never-arrived");
      const suspending = suspend(a, at(7));
      await held.reached;
      on.cluster.foreignFence(id, 8);
      on.cluster.plan.requests.length = 0;
      held.release();
      await expect(on.clock.runUntilSettled(suspending)).rejects.toMatchObject(superseded(7, 8));
      expect(writes()).toEqual([]); // Nothing was sent again.
      expect(on.cluster.plan.count("readSandbox")).toBeLessThanOrEqual(2);
      expect([stored(), on.cluster.stored(id).mode]).toEqual(["8", "Running"]);
    },
  );

  it("a suspend without an epoch too: a fence that appears between gate and patch is seen", async () => {
    await open(a);
    const held = on.cluster.plan.hold("setMode");
    const suspending = suspend(a);
    await held.reached;
    on.cluster.foreignFence(id, 1);
    held.release();
    await expect(on.clock.runUntilSettled(suspending)).rejects.toMatchObject({ reason: "HOLDER_EPOCH_REQUIRED" });
    expect(on.cluster.stored(id).mode).toBe("Running");
  });

  it("a suspend whose object moved only in its version is tried again on the fresh reading, and asks the guest once", async () => {
    await open(a);
    const held = on.cluster.plan.hold("setMode");
    const suspending = suspend(a);
    await held.reached;
    on.cluster.observe(id); // The controller writes its status.
    held.release();
    await on.clock.runUntilSettled(suspending);
    expect([a.state.t, writes().length]).toEqual(["suspended", 3]);
    expect(on.guests.count("releaseSessions")).toBeLessThanOrEqual(1);
  });

  it("71 a patch that is refused on an object that did not move is wrong itself: CLUSTER_WRITE_REFUSED, and the handle runs on", async () => {
    on.cluster.seed(id, { stamps: { holderEpoch: "3" } });
    await open(a, at(3));
    on.cluster.plan.fail("setMode", "refuse");
    await expect(suspend(a, at(3))).rejects.toMatchObject({ reason: "CLUSTER_WRITE_REFUSED" });
    expect([a.state.t, writes()]).toEqual(["active", ["setMode"]]);
  });

  it("74 a delete at 4 of what is held at 5 is refused under its own name, with nothing sent", async () => {
    on.cluster.seed(id, { stamps: { holderEpoch: "5" } });
    await expect(remove(a, at(4))).rejects.toMatchObject({
      ...superseded(4, 5),
      metadata: { operation: "DestroyWorkspace", mine: "4", stored: "5" },
    });
    expect([writes(), on.cluster.stands(id)]).toEqual([[], true]);
  });

  it("75 a fenced delete of what is gone already succeeds, and nothing is sent", async () => {
    await open(a, at(3));
    on.cluster.foreignDelete(id);
    expect(await remove(a, at(3))).toMatchObject({ deleted: false });
    expect(writes()).toEqual(["createSandbox"]);
  });

  it("76 a fenced delete that met a conflict is sent again on the fresh reading, never without its condition", async () => {
    await open(a, at(3));
    const held = on.cluster.plan.hold("deleteSandbox");
    const deleting = remove(a, at(3));
    await held.reached;
    on.cluster.observe(id);
    held.release();
    expect((await on.clock.runUntilSettled(deleting)).deleted).toBe(true);
    const sent = on.cluster.sent.filter((wish) => "resourceVersion" in wish);
    expect(sent).toHaveLength(2);
    expect(new Set(sent.map((wish) => "resourceVersion" in wish && wish.resourceVersion)).size).toBe(2);
  });

  it("a delete whose epoch is superseded between gate and request deletes nothing", async () => {
    await open(a, at(3));
    const held = on.cluster.plan.hold("deleteSandbox");
    const deleting = remove(a, at(3));
    await held.reached;
    on.cluster.foreignFence(id, 4);
    held.release();
    await expect(on.clock.runUntilSettled(deleting)).rejects.toMatchObject(superseded(3, 4));
    expect([on.cluster.stands(id), a.state.t]).toEqual([true, "gone"]);
  });

  it("a delete that got no answer and is then superseded is refused, since it can no longer land", async () => {
    await open(a, at(3));
    on.cluster.plan.fail("deleteSandbox", "late");
    const look = on.cluster.plan.hold("deleteSandbox");
    const deleting = remove(a, at(3));
    await look.reached;
    on.cluster.foreignFence(id, 4);
    look.release();
    await expect(on.clock.runUntilSettled(deleting)).rejects.toMatchObject(superseded(3, 4));
    expect(on.cluster.deliverLate()).toEqual(["refused"]);
    expect(on.cluster.stands(id)).toBe(true);
  });
});

describe("L19 the clean-up of a failed start", () => {
  beforeEach(() => {
    on.cluster.habits.podsStart = false;
  });

  it("suspends what this call woke under its epoch, and leaves the epoch stored", async () => {
    on.cluster.seed(id, { mode: "Suspended", stamps: { holderEpoch: "4" } });
    await expect(on.clock.runUntilSettled(open(a, at(5)))).rejects.toMatchObject({
      reason: "START_TIMEOUT",
      metadata: { on_start_failure: "suspended" },
    });
    expect([on.cluster.stored(id).mode, stored()]).toEqual(["Suspended", "5"]);
  });

  it("leaves running what somebody took over meanwhile, also one who touched nothing but the epoch", async () => {
    on.cluster.seed(id, { mode: "Suspended", stamps: { holderEpoch: "4" } });
    const opening = open(a, at(5));
    await settleTasks();
    on.cluster.foreignFence(id, 6);
    await expect(on.clock.runUntilSettled(opening)).rejects.toMatchObject({
      metadata: { on_start_failure: "left_running" },
    });
    expect([on.cluster.stored(id).mode, stored()]).toEqual(["Running", "6"]);
  });

  it("leaves running what somebody took over before a wake that got no answer was found to have landed", async () => {
    on.cluster.seed(id, { mode: "Suspended" });
    on.cluster.plan.fail("setMode", "reply-lost");
    const write = on.cluster.plan.hold("setMode");
    const opening = open(a);
    await write.reached;
    const look = on.cluster.plan.hold("readSandbox");
    write.release();
    await look.reached;
    on.cluster.foreignFence(id, 2);
    look.release();
    await expect(on.clock.runUntilSettled(opening)).rejects.toMatchObject({
      metadata: { on_start_failure: "left_running" },
    });
    expect([on.cluster.stored(id).mode, stored()]).toEqual(["Running", "2"]);
  });

  it("does not clean up after somebody else adopted what it woke", async () => {
    on.cluster.seed(id, { mode: "Suspended" });
    const lost = expect(open(a, at(1))).rejects.toMatchObject({
      reason: "HOLDER_EPOCH_SUPERSEDED",
      metadata: { on_start_failure: "left_running" },
    });
    await settleTasks();
    const adopting = open(b, at(2));
    await settleTasks();
    on.cluster.replacePod(id);
    expect(await on.clock.runUntilSettled(adopting)).toMatchObject({ state: "running", holderEpoch: 2 });
    await lost;
    expect(on.cluster.stored(id).mode).toBe("Running");
  });
});

describe("L22 the bind", () => {
  it("fences with what the object says, before anything else is sent to the guest", async () => {
    on.cluster.seed(id, { stamps: { holderEpoch: "5" } });
    await a.adopt(patient);
    expect(on.guests.calls.slice(0, 3).map(({ verb }) => verb)).toEqual(["fence", "probe", "health"]);
    expect([guestEpoch(), writes()]).toEqual([5, []]);
  });

  it("L17 fences with a reading that began after the pod was read: a take-over in between is told to the guest", async () => {
    on.cluster.seed(id, { stamps: { holderEpoch: "5" } });
    const pods = on.cluster.plan.hold("readPods");
    const adopting = a.adopt(patient);
    await pods.reached;
    on.cluster.foreignFence(id, 6);
    pods.release();
    await adopting;
    expect(guestEpoch()).toBe(6);
  });

  it("never fences with the caller's number, and refuses the caller who lost the workspace meanwhile", async () => {
    on.cluster.seed(id, { stamps: { holderEpoch: "5" } });
    const pods = on.cluster.plan.hold("readPods");
    const opening = open(a, at(5));
    await pods.reached;
    on.cluster.foreignFence(id, 6);
    pods.release();
    await expect(opening).rejects.toMatchObject(superseded(5, 6));
    expect(on.cluster.stored(id).mode).toBe("Running");
  });

  it("looks again when the object was suspended and woken while its pod was being looked at", async () => {
    on.cluster.seed(id);
    const claims = on.cluster.plan.hold("readClaims");
    const adopting = a.adopt(patient);
    await claims.reached;
    on.cluster.foreignMode(id, "Suspended");
    on.cluster.foreignMode(id, "Running");
    const next = on.cluster.pods(id)[0]?.uid;
    claims.release();
    await on.clock.runUntilSettled(adopting);
    expect(a.view().identity.podUid).toBe(next);
  });

  it.each([
    ["a delete that began", () => Object.assign(on.cluster.stored(id), { deleting: true }), "WORKSPACE_DELETING"],
    ["a delete that is done", () => on.cluster.foreignDelete(id), "WORKSPACE_NOT_FOUND"],
    ["another of its name", () => [on.cluster.foreignDelete(id), on.cluster.seed(id)], "WORKSPACE_REPLACED"],
    ["a suspend", () => on.cluster.foreignMode(id, "Suspended"), "WORKSPACE_SUSPENDED"],
  ])("sends nothing to the guest of a pod that %s overtook, and says so", async (_, overtake, reason) => {
    on.cluster.seed(id, { stamps: { holderEpoch: "5" } });
    const claims = on.cluster.plan.hold("readClaims");
    const adopting = a.adopt(patient);
    await claims.reached;
    overtake();
    claims.release();
    await expect(on.clock.runUntilSettled(adopting)).rejects.toMatchObject({ reason });
    expect([on.guests.calls, writes()]).toEqual([[], []]);
  });

  it("looks again where a guest knows a higher number than was read, and the object has it by then", async () => {
    on.cluster.seed(id, { stamps: { holderEpoch: "5" } });
    let asked = 0;
    on.guests.shape = (script) => {
      const { fence } = script;
      script.fence = async (epoch, within) => {
        asked += 1;
        if (asked === 1) {
          on.cluster.foreignFence(id, 9);
          script.holderEpoch = holderEpochFrom(9);
        }
        await fence(epoch, within);
      };
    };
    expect(await on.clock.runUntilSettled(a.adopt(patient))).toBeUndefined();
    expect([a.view().state, a.view().holderEpoch, guestEpoch(), asked]).toEqual(["running", 9, 9, 2]);
  });

  it("refuses a guest that cannot be fenced on a workspace that is, and serves it on one that is not", async () => {
    on.guests.shape = (script) => {
      script.fence = async () => {
        throw new HoldfastError("GUEST_FEATURE_MISSING", { message: "This guest does not serve Fence." });
      };
      script.health = async () => ({
        serving: true,
        protocolVersion: 1,
        features: ["executions"],
        bootId: "b" as never,
      });
    };
    await open(a);
    expect(await collect(a.execute(executionWish(), patient))).toHaveLength(3);
    await expect(collect(a.execute(executionWish(), patient, holderEpochFrom(0)))).rejects.toMatchObject({
      reason: "GUEST_FEATURE_MISSING",
      metadata: { feature: "holder-epoch" },
    });
    await expect(open(b, at(1))).rejects.toMatchObject({ reason: "GUEST_FEATURE_MISSING" });
    expect(on.cluster.stored(id).mode).toBe("Running");
  });

  it("keeps no guest whose pod is not ready: a second open answers once it is reached again", async () => {
    await open(a);
    const pod = on.cluster.stored(id).pods[0];
    if (!pod) throw new Error("there is no pod");
    pod.ready = false;
    const opening = open(a);
    await settleTasks();
    expect(a.view().state).toBe("starting");
    pod.ready = true;
    on.cluster.wake(id);
    expect(await on.clock.runUntilSettled(opening)).toMatchObject({ state: "running" });
    expect([on.guests.count("probe"), writes()]).toEqual([2, ["createSandbox"]]);
  });

  it("gives the fence a time of its own, and tries again: it may wait for what it withdraws", async () => {
    on.cluster.seed(id, { stamps: { holderEpoch: "5" } });
    const held = Promise.withResolvers<void>();
    let asked = 0;
    on.guests.shape = (script) => {
      const { fence } = script;
      script.fence = async (epoch, within) => {
        asked += 1;
        if (asked === 1) await silence(within);
        await fence(epoch, within);
        held.resolve();
      };
    };
    expect(await on.clock.runUntilSettled(open(a, at(5)))).toMatchObject({ state: "running" });
    await held.promise;
    expect([asked, guestEpoch()]).toEqual([2, 5]);
  });

  it("looks for the guest anew where the bound one does not confirm a higher number in time", async () => {
    await open(a, at(5));
    const agent = on.guests.agent(on.cluster.pods(id)[0]?.uid as never);
    const { fence } = agent;
    let asked = 0;
    agent.fence = async (epoch, within) => {
      asked += 1;
      if (asked === 1) await silence(within);
      await fence(epoch, within);
    };
    expect(await on.clock.runUntilSettled(open(a, at(6)))).toMatchObject({ state: "running", holderEpoch: 6 });
    expect([asked, guestEpoch()]).toEqual([2, 6]);
  });

  it("does not bind a guest that cannot keep the number: the call fails with that, and nothing is suspended for it", async () => {
    on.cluster.seed(id, { mode: "Suspended" });
    on.guests.shape = (script) => {
      script.fence = async () => {
        throw new HoldfastError("DISK_FULL", { message: "The number could not be kept." });
      };
    };
    await expect(open(a, at(1))).rejects.toMatchObject({
      reason: "DISK_FULL",
      metadata: { on_start_failure: "left_running" },
    });
    expect([on.cluster.stored(id).mode, on.guests.count("probe")]).toEqual(["Running", 0]);
  });

  it("does not believe a guest that claims a higher number than the object has", async () => {
    on.cluster.seed(id, { stamps: { holderEpoch: "5" } });
    on.guests.shape = (script) => {
      script.holderEpoch = holderEpochFrom(9);
    };
    await expect(open(a, at(5))).rejects.toMatchObject({
      reason: "WORKSPACE_NOT_READY",
      metadata: { why: "guest_epoch_unconfirmed", stored: "5", guest: "9" },
    });
    expect([on.cluster.stored(id).mode, stored()]).toEqual(["Running", "5"]);
  });

  it("is done at a rebind too: the next pod is fenced before its probe and before the call", async () => {
    await open(a, at(5));
    on.cluster.replacePod(id);
    const from = on.guests.calls.length;
    await collect(a.execute(executionWish(), patient, holderEpochFrom(5)));
    expect(on.guests.calls.slice(from).map(({ verb }) => verb)).toEqual([
      "execute",
      "fence",
      "probe",
      "health",
      "execute",
    ]);
  });
});
