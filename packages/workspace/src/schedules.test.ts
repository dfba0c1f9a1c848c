import { holderEpochFrom } from "@holdfast/contract";
import {
  collect,
  executionWish,
  type Fault,
  Gate,
  openWish,
  patient,
  type Stage,
  settleTasks,
  stage,
  suspendWish,
  workspaceId,
} from "@holdfast/testkit";
import { beforeEach, describe, expect, it } from "vitest";
import { Workspace } from "./workspace.ts";

const id = workspaceId("demo");
const at = (epoch: number) => ({ t: "epoch", epoch: holderEpochFrom(epoch) }) as const;
const resumeWish = { readyTimeoutMs: 60_000 };
const always = (fault: Fault) => Array<Fault>(200).fill(fault);
let on: Stage;
/** Two replicas. */
let a: Workspace;
let b: Workspace;

beforeEach(() => {
  on = stage();
  a = new Workspace(id, on.deps);
  b = new Workspace(id, on.deps);
});

const mode = () => on.cluster.stored(id).mode;
const modeChangedAt = () => on.cluster.stored(id).stamps.modeChangedAt ?? "";

describe("a DELETE that lands 20 s late", () => {
  const remove = { ...suspendWish, deleteDisk: true, stopTimeoutMs: 15_000, fencing: at(3) };

  beforeEach(async () => {
    await a.open({ ...openWish, fencing: at(3) }, patient);
    on.cluster.plan.fail("deleteSandbox", "late", ...always("never-arrived"));
    const deleting = on.clock.runUntilSettled(a.destroy(remove, patient));
    await expect(deleting).rejects.toMatchObject({ reason: "DELETE_UNCONFIRMED" });
    on.cluster.plan.forget();
    await on.clock.advance(20_000);
  });

  it("L34 deletes nothing once another holder has taken the workspace over meanwhile", async () => {
    const { holderEpoch } = await b.open({ ...openWish, fencing: { t: "take_over" } }, patient);
    expect(holderEpoch).toBe(4);
    expect(on.cluster.deliverLate()).toEqual(["refused"]);
    expect(await collect(b.execute(executionWish(), patient, holderEpochFrom(4)))).toHaveLength(3);
  });

  it("L34 is not forgotten: until it is known, this handle admits no call, and says deleting", async () => {
    expect([a.view().state, a.hasUnresolvedStop]).toEqual(["deleting", true]);
    const running = collect(a.execute(executionWish(), patient, holderEpochFrom(3)));
    await expect(running).rejects.toMatchObject({ reason: "WORKSPACE_DELETING" });
    expect(on.cluster.deliverLate()).toEqual(["applied"]);
    expect(await a.destroy(remove, patient)).toMatchObject({ deleted: false });
    expect(a.state).toEqual({ t: "gone", why: "deleted" });
  });

  it.each([
    ["is seen to stand", []],
    ["cannot be read", always("unavailable")],
  ] as const)("L34 is not forgotten by a Resume that fails, where the object then %s", async (_what, reads) => {
    const patch = on.cluster.plan.hold("setMode");
    on.cluster.plan.fail("setMode", "refuse");
    const resuming = on.clock.runUntilSettled(a.resume({ ...resumeWish, fencing: at(3) }, patient));
    await patch.reached;
    on.cluster.plan.fail("readSandbox", ...reads);
    patch.release();
    await expect(resuming).rejects.toMatchObject({ reason: "CLUSTER_WRITE_REFUSED" });
    on.cluster.plan.forget();
    expect([a.view().state, a.hasUnresolvedStop]).toEqual(["deleting", true]);
    expect(on.cluster.deliverLate()).toEqual(["applied"]);
  });
});

describe("a suspend that nobody answered", () => {
  it("L1 is not forgotten by a Resume that fails, where the object then cannot be read", async () => {
    await a.open(openWish, patient);
    on.cluster.plan.fail("setMode", "late", ...always("never-arrived"));
    await on.clock.runUntilSettled(a.suspend({ ...suspendWish, stopTimeoutMs: 3_000 }, patient).catch(() => undefined));
    on.cluster.plan.forget();
    const patch = on.cluster.plan.hold("setMode");
    on.cluster.plan.fail("setMode", "refuse");
    const resuming = on.clock.runUntilSettled(a.resume(resumeWish, patient));
    await patch.reached;
    on.cluster.plan.fail("readSandbox", ...always("unavailable"));
    patch.release();
    await expect(resuming).rejects.toMatchObject({ reason: "CLUSTER_WRITE_REFUSED" });
    expect(a.state.t).toBe("suspending");
  });
});

describe("writes of one millisecond, and a clock that steps back", () => {
  it("have stamps that only grow, so that a late one of them never fits again", async () => {
    on.cluster.seed(id, { mode: "Suspended" });
    on.cluster.plan.fail("setMode", "late");
    await on.clock.runUntilSettled(a.open(openWish, patient));
    const stamps = [modeChangedAt()];
    for (const replica of [b, a]) {
      await replica.suspend(suspendWish, patient);
      stamps.push(modeChangedAt());
      on.clock.step(-3_600_000);
      await replica.resume(resumeWish, patient);
      stamps.push(modeChangedAt());
    }
    await b.suspend(suspendWish, patient);
    stamps.push(modeChangedAt());
    expect(stamps).toEqual([...new Set(stamps)].sort());
    expect(on.cluster.deliverLate()).toEqual(["refused"]);
    expect([mode(), on.cluster.pods(id)]).toEqual(["Suspended", []]);
  });

  it("two wakes at once: one is written, the other finds it running, and both are bound to the one pod", async () => {
    on.cluster.seed(id, { mode: "Suspended" });
    const held = on.cluster.plan.hold("setMode");
    const one = a.open(openWish, patient);
    await held.reached;
    const two = await b.open(openWish, patient);
    held.release();
    const views = [await on.clock.runUntilSettled(one), two];
    expect(views.map(({ origin }) => origin)).toEqual(["adopted_running", "resumed"]);
    expect(new Set(views.map(({ identity }) => identity.podUid)).size).toBe(1);
    expect(on.cluster.stored(id).generation).toBe(2);
  });
});

describe("a suspend's patch beaten by another suspend and a resume", () => {
  it("L24 starts over from the gate: the pod that stands by then is asked and stopped, not the one that was", async () => {
    await a.open({ ...openWish, fencing: at(2) }, patient);
    const held = on.cluster.plan.hold("setMode");
    const suspending = a.suspend({ ...suspendWish, fencing: at(2) }, patient);
    await held.reached;
    await b.suspend({ ...suspendWish, fencing: at(2) }, patient);
    await b.resume({ ...resumeWish, fencing: at(2) }, patient);
    const next = on.cluster.pods(id)[0]?.uid;
    held.release();
    await on.clock.runUntilSettled(suspending);
    expect([a.state.t, mode(), on.cluster.pods(id)]).toEqual(["suspended", "Suspended", []]);
    expect(on.guests.calls.some(({ verb, pod }) => verb === "health" && pod === next)).toBe(true);
  });

  it("L21 is refused when they were another holder's, and stops nothing", async () => {
    await a.open({ ...openWish, fencing: at(2) }, patient);
    const held = on.cluster.plan.hold("setMode");
    const suspending = a.suspend({ ...suspendWish, fencing: at(2) }, patient);
    await held.reached;
    await b.suspend({ ...suspendWish, fencing: at(3) }, patient);
    await b.resume({ ...resumeWish, fencing: at(3) }, patient);
    held.release();
    await expect(on.clock.runUntilSettled(suspending)).rejects.toMatchObject({ reason: "HOLDER_EPOCH_SUPERSEDED" });
    expect(mode()).toBe("Running");
    expect(await collect(b.execute(executionWish(), patient, holderEpochFrom(3)))).toHaveLength(3);
  });
});

describe("a suspend undone before the controller looked", () => {
  it("L25 is SUSPEND_OVERTAKEN, never suspended, and L15 the pod that was never stopped is used again", async () => {
    await a.open(openWish, patient);
    const pod = on.cluster.pods(id)[0]?.uid;
    on.cluster.habits.controller = false;
    const suspending = a.suspend(suspendWish, patient);
    const overtaken = expect(suspending).rejects.toMatchObject({ reason: "SUSPEND_OVERTAKEN" });
    await settleTasks();
    expect(a.state.t).toBe("suspending");
    on.cluster.foreignMode(id, "Running");
    on.cluster.habits.controller = true;
    on.cluster.observe(id);
    await on.clock.runUntilSettled(overtaken);
    expect(await on.clock.runUntilSettled(collect(a.execute(executionWish(), patient)))).toHaveLength(3);
    expect(a.view().identity.podUid).toBe(pod);
  });
});

describe("a POST that lands after its deadline", () => {
  const opening = { ...openWish, fencing: at(5), readyTimeoutMs: 5_000 };

  beforeEach(async () => {
    on.cluster.plan.fail("createSandbox", "late", ...always("never-arrived"));
    await expect(on.clock.runUntilSettled(a.open(opening, patient))).rejects.toMatchObject({
      reason: "CLUSTER_UNAVAILABLE",
      metadata: { created_by: expect.any(String) },
    });
    on.cluster.plan.forget();
    on.cluster.habits.podsStart = false;
    await on.clock.advance(20_000);
    expect(on.cluster.deliverLate()).toEqual(["applied"]);
    expect(on.cluster.stored(id)).toMatchObject({ mode: "Running", stamps: { holderEpoch: "5" } });
  });

  it("L14 is looked for, and suspended at the end, since nobody can use it; it keeps its epoch", async () => {
    await on.clock.advance(120_000);
    expect(on.cluster.stored(id)).toMatchObject({ mode: "Suspended", stamps: { holderEpoch: "5" } });
    expect(on.cluster.plan.writes).not.toContain("deleteSandbox");
  });

  it("L19 is left to whoever took it over meanwhile", async () => {
    const taking = b.open({ ...openWish, fencing: { t: "take_over" } }, patient);
    await on.clock.advance(130_000);
    expect(on.cluster.stored(id)).toMatchObject({ mode: "Running", stamps: { holderEpoch: "6" } });
    on.cluster.replacePod(id);
    expect(await on.clock.runUntilSettled(taking)).toMatchObject({ state: "running", holderEpoch: 6 });
  });
});

describe("a suspend on one replica and a resume on the other", () => {
  it("leave the first with nothing false: its suspend is sent, and after a resume its commands reach the pod that stands", async () => {
    await a.open(openWish, patient);
    await a.suspend(suspendWish, patient);
    await b.open(openWish, patient);
    expect((await a.suspend(suspendWish, patient)).view.state).toBe("suspended");
    expect([mode(), on.cluster.pods(id)]).toEqual(["Suspended", []]);
    await b.resume(resumeWish, patient);
    expect(await a.isOutlived()).toBe(true);
    const fresh = new Workspace(id, on.deps);
    await fresh.adopt(patient);
    expect(await collect(fresh.execute(executionWish(), patient))).toHaveLength(3);
  });
});

describe("a start on an open workspace, while a call notices somebody else's suspend", () => {
  it.each([
    ["an Open", () => a.open(openWish, patient)],
    ["a Resume", () => a.resume(resumeWish, patient)],
  ])("%s does not answer that its guest is kept", async (_verb, start) => {
    await a.open(openWish, patient);
    on.cluster.habits.controller = false;
    const pods = on.cluster.plan.hold("readPods");
    const starting = start();
    await pods.reached;
    on.cluster.foreignMode(id, "Suspended");
    await a.refresh(patient);
    pods.release();
    await expect(starting).rejects.toMatchObject({ reason: "WORKSPACE_SUSPENDED" });
    expect(a.view().state).toBe("suspending");
  });
});

describe("a start whose guest is kept, and the news of somebody else's suspend", () => {
  it.each([...Array(16).keys()])(
    "answers what was so, or fails by name, also where they come %s turns apart",
    async (turns) => {
      await a.open(openWish, patient);
      on.cluster.habits.controller = false;
      const pods = on.cluster.plan.hold("readPods");
      const starting = a.resume(resumeWish, patient);
      await pods.reached;
      const look = on.cluster.plan.hold("readSandbox");
      const refreshing = a.refresh(patient);
      await look.reached;
      on.cluster.foreignMode(id, "Suspended");
      pods.release();
      for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
      look.release();
      const told = await starting.then(
        ({ state }) => state,
        (error) => error.reason,
      );
      expect(["running", "WORKSPACE_SUSPENDED"]).toContain(told);
      await refreshing;
      expect(a.view().state).toBe("suspending");
    },
  );
});

describe("a look at the object whose answer comes late", () => {
  /** The next look sees the object now; its answer comes when the gate is opened. */
  function answerLate(): Gate {
    const gate = new Gate();
    const read = on.cluster.readSandbox.bind(on.cluster);
    on.cluster.readSandbox = async (name, within) => {
      on.cluster.readSandbox = read;
      const seen = await read(name, within);
      await gate.pass(within.signal);
      return seen;
    };
    return gate;
  }

  it("L1 settles no write that was sent after it: a Resume still defeats that one", async () => {
    await a.open(openWish, patient);
    const answer = answerLate();
    const looking = a.refresh(patient);
    await answer.reached;
    const stored = on.cluster.stored(id); // The controller writes its status.
    stored.resourceVersion = String(Number(stored.resourceVersion) + 1);
    on.cluster.plan.fail("setMode", "late", ...always("never-arrived"));
    const stopping = on.clock.runUntilSettled(a.suspend({ ...suspendWish, stopTimeoutMs: 3_000 }, patient));
    await expect(stopping).rejects.toMatchObject({ reason: "SUSPEND_UNCONFIRMED" });
    on.cluster.plan.forget();

    answer.release();
    await looking;
    expect(a.hasUnresolvedStop).toBe(true);
    await a.resume(resumeWish, patient);
    expect(on.cluster.deliverLate()).toEqual(["refused"]);
    expect(mode()).toBe("Running");
  });
});
