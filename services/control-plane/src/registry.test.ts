import { holderEpochFrom } from "@holdfast/contract";
import {
  collect,
  executionWish,
  Gate,
  openWish,
  patient,
  type Stage,
  settleTasks,
  silence,
  stage,
  suspendWish,
  workspaceId,
} from "@holdfast/testkit";
import { GuestNotReached, type Workspace } from "@holdfast/workspace";
import { beforeEach, describe, expect, it } from "vitest";
import { WorkspaceRegistry } from "./registry.ts";

const id = workspaceId("demo");
let on: Stage;
let registry: WorkspaceRegistry;

beforeEach(() => {
  on = stage();
  registry = new WorkspaceRegistry(on.deps);
});

const reasonOf = async (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => "none",
    (error: { reason?: string }) => error.reason ?? String(error),
  );
const run = () => collect(registry.execute(id, executionWish(), patient));

describe("handles", () => {
  it("are shared: two Opens of one id make one handle and one workspace", async () => {
    const [first, second] = await Promise.all([
      registry.open(id, openWish, patient),
      registry.open(id, openWish, patient),
    ]);
    expect([first.origin, second.origin].sort()).toEqual(["already_open", "created"]);
    expect(registry.size).toBe(1);
    expect(on.cluster.plan.writes).toEqual(["createSandbox"]);
  });

  it("L6 are not left by a failed Open", async () => {
    expect(await reasonOf(registry.open(id, { ...openWish, create: "must_exist" }, patient))).toBe(
      "WORKSPACE_NOT_FOUND",
    );
    expect(registry.size).toBe(0);
  });

  it("do not end a call that waited behind another one's failure: it has its own try", async () => {
    on.cluster.seed(id, { mode: "Running" });
    const gate = on.cluster.plan.hold("readSandbox");
    const failing = reasonOf(registry.open(id, { ...openWish, create: "must_create" }, patient));
    await gate.reached;
    const waiting = registry.open(id, openWish, patient);
    gate.release();
    expect(await failing).toBe("WORKSPACE_EXISTS");
    expect((await waiting).state).toBe("running");
    expect(registry.size).toBe(1);
  });

  it("make an Open that waited behind a Destroy create anew", async () => {
    const first = await registry.open(id, openWish, patient);
    const gate = on.cluster.plan.hold("deleteSandbox");
    const destroyed = registry.destroy(id, { ...suspendWish, deleteDisk: true }, patient);
    await gate.reached;
    const reopened = registry.open(id, openWish, patient);
    gate.release();
    expect((await destroyed).view).toBeUndefined();
    const second = await reopened;
    expect(second.origin).toBe("created");
    expect(second.identity.sandboxUid).not.toBe(first.identity.sandboxUid);
  });

  it("are gone after a Destroy with its disk; destroying again succeeds and makes none", async () => {
    await registry.open(id, openWish, patient);
    await registry.destroy(id, { ...suspendWish, deleteDisk: true }, patient);
    expect(registry.size).toBe(0);
    await registry.destroy(id, { ...suspendWish, deleteDisk: true }, patient);
    expect(registry.size).toBe(0);
    expect(on.cluster.plan.count("deleteSandbox")).toBe(1);
  });

  it("are bounded: the one that was used longest ago makes room, one in use does not", async () => {
    registry = new WorkspaceRegistry(on.deps, 2);
    const [a, b, c, d] = ["a", "b", "c", "d"].map(workspaceId) as [typeof id, typeof id, typeof id, typeof id];
    await registry.open(a, openWish, patient);
    await registry.open(b, openWish, patient);
    const gate = new Gate();
    on.guests.agent(on.cluster.pods(a)[0]?.uid ?? expect.unreachable()).execute = async function* (_wish, signal) {
      await gate.pass(signal);
      yield* [];
    };
    const busy = collect(registry.execute(a, executionWish(), patient));
    await gate.reached;
    await registry.open(c, openWish, patient);
    expect(registry.close(b)).toBe(false); // It made room for c; a, older but in use, did not.
    const stays = collect(registry.execute(a, executionWish(), patient)).catch(() => []);
    const open = on.cluster.plan.hold("createSandbox");
    const fourth = registry.open(d, openWish, patient);
    await open.reached;
    expect(await reasonOf(registry.open(b, openWish, patient))).toBe("WORKSPACE_CAPACITY");
    open.release();
    gate.release();
    await Promise.all([busy, stays, fourth]);
  });

  it("are let go by Close, which ends nobody's stream and is true only when one was open", async () => {
    await registry.open(id, openWish, patient);
    const gate = new Gate();
    const pod = on.cluster.pods(id)[0]?.uid ?? expect.unreachable();
    const { execute } = on.guests.agent(pod);
    on.guests.agent(pod).execute = async function* (wish, signal) {
      await gate.pass(signal);
      yield* execute(wish, signal);
    };
    const stream = run();
    await gate.reached;
    expect(registry.close(id)).toBe(true);
    expect(registry.close(id)).toBe(false);
    gate.release();
    expect((await stream).at(-1)?.t).toBe("exited");
    expect(on.cluster.plan.writes).toEqual(["createSandbox"]);
  });
});

describe("a call on a workspace that is not open here", () => {
  it("adopts it silently when it runs: no write, and the callers that come meanwhile share one look", async () => {
    on.cluster.seed(id, { mode: "Running" });
    const results = await Promise.all([run(), run(), run()]);
    for (const events of results) expect(events.at(-1)?.t).toBe("exited");
    expect(on.cluster.plan.writes).toEqual([]);
    expect(on.guests.count("probe")).toBe(1);
    expect(registry.size).toBe(1);
  });

  it("never wakes a suspended one, never creates an absent one, and leaves no handle", async () => {
    on.cluster.seed(id, { mode: "Suspended" });
    expect(await reasonOf(run())).toBe("WORKSPACE_SUSPENDED");
    expect(await reasonOf(collect(registry.execute(workspaceId("absent"), executionWish(), patient)))).toBe(
      "WORKSPACE_NOT_FOUND",
    );
    expect(on.cluster.plan.writes).toEqual([]);
    expect(registry.size).toBe(0);
  });

  it("is not refused by an adoption that began before it and found what no longer holds", async () => {
    const found = Promise.withResolvers<void>();
    const answered = Promise.withResolvers<void>();
    const { readSandbox } = on.cluster;
    on.cluster.readSandbox = async (...asked) => {
      const reading = await readSandbox.apply(on.cluster, asked);
      found.resolve();
      await answered.promise;
      return reading;
    };
    const before = reasonOf(run());
    await found.promise;
    on.cluster.seed(id, { mode: "Running" });
    const after = run();
    await settleTasks();
    answered.resolve();
    expect(await before).toBe("WORKSPACE_NOT_FOUND");
    expect((await after).at(-1)?.t).toBe("exited");
  });

  it("ends only its own wait when its caller goes away: the adoption serves the others", async () => {
    on.cluster.seed(id, { mode: "Running" });
    const gate = on.cluster.plan.hold("readSandbox");
    const caller = new AbortController();
    const leaving = collect(registry.execute(id, executionWish(), caller.signal));
    await gate.reached;
    const staying = run();
    caller.abort(new Error("left"));
    await expect(leaving).rejects.toThrow("left");
    gate.release();
    expect((await staying).at(-1)?.t).toBe("exited");
  });

  it("is read through by Get: no handle, no guest, no origin", async () => {
    on.cluster.seed(id, { mode: "Running" });
    const { view, health } = await registry.read(id, true, patient);
    expect(view.state).toBe("running");
    expect(view.origin).toBeUndefined();
    expect(health).toBeUndefined();
    expect(on.guests.calls).toEqual([]);
    expect(registry.size).toBe(0);
  });

  it("suspends and destroys it without waking it or dialling a new guest for it to run", async () => {
    on.cluster.seed(id, { mode: "Running" });
    const { view } = await registry.suspend(id, suspendWish, patient);
    expect(view.state).toBe("suspended");
    await registry.destroy(id, { ...suspendWish, deleteDisk: true }, patient);
    expect(on.cluster.stands(id)).toBe(false);
    expect(on.cluster.plan.writes).toEqual(["setMode", "deleteSandbox"]);
  });
});

describe("a call whose handle ends before it is admitted", () => {
  it("goes on by adoption when the workspace still runs", async () => {
    await registry.open(id, openWish, patient);
    await registry.suspend(id, suspendWish, patient);
    // A Resume that finds another object than the handle's ends the handle; the object of the name runs.
    on.cluster.foreignDelete(id);
    on.cluster.seed(id, { mode: "Running" });
    expect(await reasonOf(registry.resume(id, { readyTimeoutMs: 1_000 }, patient))).toBe("WORKSPACE_REPLACED");
    expect((await run()).at(-1)?.t).toBe("exited");
  });
});

describe("a command that has begun", () => {
  it("is never run again on a new handle, whatever became of the old one", async () => {
    await registry.open(id, openWish, patient);
    const pod = on.cluster.pods(id)[0]?.uid ?? expect.unreachable();
    on.guests.agent(pod).execute = async function* (wish) {
      yield { t: "started", executionId: wish.executionId, bootId: "boot" as never, attached: false };
      on.cluster.foreignDelete(id);
      on.cluster.seed(id, { mode: "Running" });
      throw new GuestNotReached("no-connection", "its link could not be made again");
    };
    expect(await reasonOf(run())).toBe("EXECUTION_DETACHED");
    expect(on.guests.count("execute")).toBe(1);
  });
});

describe("a handle that is at work", () => {
  it("is kept when its caller goes away: the next Open waits for it, and loses nothing to its clean-up", async () => {
    on.cluster.habits.podsStart = false;
    const caller = new AbortController();
    const leaving = registry.open(id, openWish, caller.signal);
    await settleTasks();
    const cleanUp = on.cluster.plan.hold("setMode");
    caller.abort(new Error("left"));
    await expect(leaving).rejects.toThrow("left");
    await cleanUp.reached;
    const staying = registry.open(id, openWish, patient);
    await settleTasks();
    on.cluster.habits.podsStart = true;
    cleanUp.release();
    expect((await staying).state).toBe("running");
    expect(on.cluster.stored(id).mode).toBe("Running");
    expect(registry.size).toBe(1);
  });

  it("is let go by Close only when its transition is over, so that two never run side by side", async () => {
    await registry.open(id, openWish, patient);
    const patch = on.cluster.plan.hold("setMode");
    const suspending = registry.suspend(id, suspendWish, patient);
    await patch.reached;
    expect(registry.close(id)).toBe(true);
    const reopened = registry.open(id, openWish, patient);
    patch.release();
    expect((await suspending).view.state).toBe("suspended");
    expect((await reopened).origin).toBe("resumed");
    expect(on.cluster.stored(id).mode).toBe("Running");
  });

  it("is let go after a Close, once its transition is over, though nobody waits for that any more", async () => {
    await registry.open(id, openWish, patient);
    const patch = on.cluster.plan.hold("setMode");
    const caller = new AbortController();
    const suspending = registry.suspend(id, suspendWish, caller.signal);
    await patch.reached;
    caller.abort(new Error("left"));
    await expect(suspending).rejects.toThrow("left");
    expect(registry.close(id)).toBe(true);
    expect(registry.size).toBe(1);
    patch.release();
    await settleTasks();
    expect(registry.size).toBe(0);
  });

  it("does not make room for another one", async () => {
    registry = new WorkspaceRegistry(on.deps, 1);
    await registry.open(id, openWish, patient);
    const patch = on.cluster.plan.hold("setMode");
    const caller = new AbortController();
    const suspending = registry.suspend(id, suspendWish, caller.signal);
    await patch.reached;
    caller.abort(new Error("left"));
    await expect(suspending).rejects.toThrow("left");
    expect(await reasonOf(registry.open(workspaceId("other"), openWish, patient))).toBe("WORKSPACE_CAPACITY");
    patch.release();
    await settleTasks();
    await registry.open(workspaceId("other"), openWish, patient);
    expect(registry.size).toBe(1);
  });
});

describe("a failed Open whose clean-up got no answer", () => {
  it("L1 keeps its handle, and the next Open defeats the suspend that may still land", async () => {
    on.cluster.habits.podsStart = false;
    on.cluster.plan.fail("setMode", "late");
    const failing = registry.open(id, { ...openWish, readyTimeoutMs: 5_000 }, patient);
    expect(await on.clock.runUntilSettled(reasonOf(failing))).toBe("START_TIMEOUT");
    expect((await registry.read(id, false, patient)).view.state).toBe("suspending");
    expect(await reasonOf(run())).toBe("WORKSPACE_SUSPENDED");
    on.cluster.replacePod(id);
    expect((await registry.open(id, openWish, patient)).state).toBe("running");
    expect(on.cluster.deliverLate()).toEqual(["refused"]);
    expect(on.cluster.stored(id).mode).toBe("Running");
  });
});

describe("L14 a POST that landed after its Open had failed", () => {
  it("is not suspended at the end of the window while a later Open waits for its pod", async () => {
    on.cluster.habits.podsStart = false;
    on.cluster.plan.fail("createSandbox", "late");
    const cut = on.cluster.plan.hold("createSandbox");
    const failing = reasonOf(registry.open(id, { ...openWish, readyTimeoutMs: 5_000 }, patient));
    await cut.reached;
    on.cluster.plan.fail("readSandbox", "stall");
    cut.release();
    expect(await on.clock.runUntilSettled(failing, 60_000)).toBe("CLUSTER_UNAVAILABLE");
    expect(on.cluster.deliverLate()).toEqual(["applied"]);
    const opening = registry.open(id, openWish, patient);
    await on.clock.advance(130_000);
    expect(on.cluster.stored(id).mode).toBe("Running");
    on.cluster.replacePod(id);
    expect((await opening).state).toBe("running");
    expect(on.cluster.plan.writes).toEqual(["createSandbox"]);
  });

  it("is not called deleted before it can no longer land", async () => {
    on.cluster.plan.fail("createSandbox", "late");
    const cut = on.cluster.plan.hold("createSandbox");
    const failing = reasonOf(registry.open(id, { ...openWish, readyTimeoutMs: 5_000 }, patient));
    await cut.reached;
    on.cluster.plan.fail("readSandbox", "stall");
    cut.release();
    expect(await on.clock.runUntilSettled(failing, 60_000)).toBe("CLUSTER_UNAVAILABLE");
    const remove = () => registry.destroy(id, { ...suspendWish, deleteDisk: true }, patient);
    await expect(remove()).rejects.toMatchObject({
      reason: "DELETE_UNCONFIRMED",
      metadata: { why: "unanswered_create" },
    });
    on.cluster.deliverLate();
    await remove();
    expect(on.cluster.stands(id)).toBe(false);
    await on.clock.advance(130_000);
    await remove();
    expect(on.cluster.plan.writes).toEqual(["createSandbox", "deleteSandbox"]);
  });

  it("is not suspended either when the later Open's handle has been let go by then", async () => {
    on.cluster.plan.fail("createSandbox", "late");
    const cut = on.cluster.plan.hold("createSandbox");
    const failing = reasonOf(registry.open(id, { ...openWish, readyTimeoutMs: 5_000 }, patient));
    await cut.reached;
    on.cluster.plan.fail("readSandbox", "stall");
    cut.release();
    expect(await on.clock.runUntilSettled(failing, 60_000)).toBe("CLUSTER_UNAVAILABLE");
    on.cluster.deliverLate();
    await registry.open(id, openWish, patient);
    registry.close(id);
    on.cluster.stored(id).pods = [];
    await on.clock.advance(130_000);
    expect(on.cluster.plan.writes).toEqual(["createSandbox"]);
    expect(on.clock.pending).toBe(0);
  });
});

describe("L35 a handle that says suspended", () => {
  beforeEach(async () => {
    await registry.open(id, openWish, patient);
    await registry.suspend(id, suspendWish, patient);
  });

  it("is dropped when an uncached read shows Running, and the call goes on by adoption", async () => {
    on.cluster.foreignMode(id, "Running");
    expect((await run()).at(-1)?.t).toBe("exited");
    expect(on.cluster.plan.count("setMode")).toBe(1); // Our own suspend; adopting wrote nothing.
  });

  it("is not shown by Get once somebody else has woken the workspace", async () => {
    expect((await registry.read(id, false, patient)).view.state).toBe("suspended");
    on.cluster.foreignMode(id, "Running");
    expect((await registry.read(id, false, patient)).view.state).toBe("running");
  });

  it("is dropped when a wake of ours that got no answer landed after all", async () => {
    on.cluster.plan.fail("setMode", ...Array<"late">(50).fill("late"));
    const resuming = registry.resume(id, { readyTimeoutMs: 5_000 }, patient);
    expect(await on.clock.runUntilSettled(reasonOf(resuming))).toBe("CLUSTER_UNAVAILABLE");
    on.cluster.plan.forget();
    expect(on.cluster.deliverLate()[0]).toBe("applied");
    expect((await run()).at(-1)?.t).toBe("exited");
  });

  it("is dropped when somebody deleted the workspace, or made another of its name", async () => {
    on.cluster.foreignDelete(id);
    expect(await reasonOf(registry.read(id, false, patient))).toBe("WORKSPACE_NOT_FOUND");
    expect(registry.size).toBe(0);
    await registry.open(id, openWish, patient);
    await registry.suspend(id, suspendWish, patient);
    on.cluster.foreignDelete(id);
    const { uid } = on.cluster.seed(id, { mode: "Suspended" });
    expect((await registry.read(id, false, patient)).view.identity.sandboxUid).toBe(uid);
  });

  it("refuses on its state after a read that began once the call had come: one runs, and one waits for all who come meanwhile", async () => {
    const before = on.cluster.plan.count("readSandbox");
    const refused = await Promise.all([reasonOf(run()), reasonOf(run()), reasonOf(run())]);
    expect(refused).toEqual(["WORKSPACE_SUSPENDED", "WORKSPACE_SUSPENDED", "WORKSPACE_SUSPENDED"]);
    expect(on.cluster.plan.count("readSandbox") - before).toBe(2);
  });

  it("refuses without a word of its state when it cannot look: somebody may have woken it; the handle stands", async () => {
    on.cluster.plan.fail("readSandbox", "unavailable");
    expect(await reasonOf(run())).toBe("CLUSTER_UNAVAILABLE");
    expect(registry.size).toBe(1);
    expect(await reasonOf(run())).toBe("WORKSPACE_SUSPENDED");
  });

  it("is dropped when it was woken and suspended again since: another pod may stand", async () => {
    on.cluster.foreignMode(id, "Running");
    on.cluster.habits.podsEnd = false;
    on.cluster.foreignMode(id, "Suspended");
    expect((await registry.read(id, false, patient)).view.state).toBe("suspending");
  });

  it("is dropped also when a tool left the same marks, in the same millisecond: the generation tells", async () => {
    const { stamps } = on.cluster.stored(id);
    const { writtenBy, modeChangedAt } = stamps;
    on.cluster.foreignMode(id, "Running");
    on.cluster.habits.podsEnd = false;
    on.cluster.foreignMode(id, "Suspended");
    Object.assign(on.cluster.stored(id).stamps, { writtenBy, modeChangedAt });
    expect((await registry.read(id, false, patient)).view.state).toBe("suspending");
  });

  it("is not what Get says when it cannot look: somebody may have woken it", async () => {
    on.cluster.foreignMode(id, "Running");
    on.cluster.plan.fail("readSandbox", "unavailable");
    expect((await registry.read(id, false, patient)).view.state).toBe("running");
  });
});

describe("L35 a handle that saw somebody else's suspend", () => {
  beforeEach(async () => {
    await registry.open(id, openWish, patient);
    on.cluster.habits.podsEnd = false;
    on.cluster.foreignMode(id, "Suspended");
    expect((await registry.read(id, false, patient)).view.state).toBe("suspending");
  });

  const wake = () => {
    on.cluster.endPods(id);
    on.cluster.foreignMode(id, "Running");
  };

  it("is dropped when a read shows that somebody woke the workspace, and the call goes on by adoption", async () => {
    expect(await reasonOf(run())).toBe("WORKSPACE_SUSPENDED");
    wake();
    expect((await run()).at(-1)?.t).toBe("exited");
    expect(on.cluster.plan.count("setMode")).toBe(0);
  });

  it("is not what Get says: that is what stands", async () => {
    expect((await registry.read(id, false, patient)).view.state).toBe("suspending");
    on.cluster.endPods(id);
    expect((await registry.read(id, false, patient)).view.state).toBe("suspended");
    wake();
    expect((await registry.read(id, false, patient)).view.state).toBe("running");
  });
});

describe("L35 a call while an earlier look tells of a suspend that is undone by now", () => {
  it.each(Array.from({ length: 24 }, (_, turns) => turns))(
    "is carried out, %i turns before the news",
    async (turns) => {
      await registry.open(id, openWish, patient);
      const read = on.deps.cluster.readSandbox.bind(on.deps.cluster);
      const seen = Promise.withResolvers<void>();
      const answer = Promise.withResolvers<void>();
      on.deps.cluster.readSandbox = async (name, within) => {
        on.deps.cluster.readSandbox = read;
        const reading = await read(name, within);
        seen.resolve();
        await answer.promise;
        return reading;
      };
      on.cluster.foreignMode(id, "Suspended");
      const looked = registry.heard({ t: "missed" });
      await seen.promise;
      on.cluster.foreignMode(id, "Running");
      const called = reasonOf(run());
      for (let turn = 0; turn < turns; turn += 1) await undefined;
      answer.resolve();
      expect(["none", "WORKSPACE_NOT_READY"]).toContain(await on.clock.runUntilSettled(called));
      await on.clock.runUntilSettled(looked);
    },
  );
});

describe("L35 a read while a start looks at a handle that says suspended", () => {
  it.each([
    ["start", "suspended", () => registry.open(id, openWish, patient)],
    ["delete", "suspended", () => registry.deleteObject(id, suspendWish, patient)],
    ["start", "suspending", () => registry.open(id, openWish, patient)],
  ])("nor is a command beside a %s told that it is %s", async (_, state, begin) => {
    await registry.open(id, openWish, patient);
    on.cluster.habits.podsEnd = state === "suspended";
    const suspending = registry.suspend(id, { ...suspendWish, stopTimeoutMs: 1_000 }, patient);
    await on.clock.runUntilSettled(suspending.catch(() => undefined));
    expect(registry.stateOf(id)).toBe(state);
    on.cluster.habits.podsEnd = true;
    on.cluster.foreignMode(id, "Running");
    const look = on.cluster.plan.hold("readSandbox");
    const beside = begin();
    await look.reached;
    expect(await reasonOf(run())).toBe("WORKSPACE_NOT_READY");
    look.release();
    await beside;
  });

  it("tells what stands, not what the handle last confirmed", async () => {
    await registry.open(id, openWish, patient);
    await registry.suspend(id, suspendWish, patient);
    on.cluster.foreignMode(id, "Running");
    const look = on.cluster.plan.hold("readSandbox");
    const opening = registry.open(id, openWish, patient);
    await look.reached;
    expect((await registry.read(id, false, patient)).view.state).toBe("running");
    look.release();
    expect((await opening).state).toBe("running");
  });
});

describe("a handle that says deleting", () => {
  const remove = { ...suspendWish, stopTimeoutMs: 1_000, deleteDisk: true };
  const destroy = () => on.clock.runUntilSettled(reasonOf(registry.destroy(id, remove, patient)));

  beforeEach(async () => {
    await registry.open(id, openWish, patient);
    on.cluster.habits.podsEnd = false;
    expect(await destroy()).toBe("DELETE_UNCONFIRMED");
  });

  it("says so while anything of it is left, and is dropped once all of it is gone", async () => {
    expect(await reasonOf(run())).toBe("WORKSPACE_DELETING");
    on.cluster.collect("namzu-ws-demo");
    on.cluster.claims.set("disk-namzu-ws-demo", "claim-1"); // Its finalizer still holds it.
    expect((await registry.read(id, false, patient)).view.state).toBe("deleting");
    expect(await destroy()).toBe("DELETE_UNCONFIRMED");
    on.cluster.claims.clear();
    expect(await reasonOf(registry.read(id, false, patient))).toBe("WORKSPACE_NOT_FOUND");
    expect(registry.size).toBe(0);
    expect((await registry.open(id, openWish, patient)).origin).toBe("created");
  });

  it("refuses nothing as deleting beside a start that looks: another may run under its name by now", async () => {
    on.cluster.foreignDelete(id);
    on.cluster.seed(id, { mode: "Running" });
    const look = on.cluster.plan.hold("readSandbox");
    const beside = registry.open(id, openWish, patient).catch(() => undefined);
    await look.reached;
    expect(await reasonOf(run())).toBe("WORKSPACE_NOT_READY");
    look.release();
    await beside;
  });

  it("suspends what stands, where the DELETE that nobody answered cannot land any more", async () => {
    const other = workspaceId("other");
    await registry.open(other, openWish, patient);
    on.cluster.plan.fail("deleteSandbox", ...Array<"late">(50).fill("late"));
    const removing = registry.destroy(other, remove, patient);
    expect(await on.clock.runUntilSettled(reasonOf(removing))).toBe("DELETE_UNCONFIRMED");
    on.cluster.plan.forget();
    const stop = { ...suspendWish, stopTimeoutMs: 1_000 };
    expect(await reasonOf(registry.suspend(other, stop, patient))).toBe("WORKSPACE_DELETING"); // It may still land.
    on.cluster.foreignFence(other, 0); // Somebody writes.
    on.cluster.habits.podsEnd = true;
    expect((await registry.suspend(other, suspendWish, patient)).view.state).toBe("suspended");
    expect([...new Set(on.cluster.deliverLate())]).toEqual(["refused"]);
  });

  it("is dropped when another workspace of its name runs", async () => {
    on.cluster.foreignDelete(id);
    on.cluster.seed(id, { mode: "Running" });
    expect((await run()).at(-1)?.t).toBe("exited");
  });
});

describe("a delete that got no answer", () => {
  it("L34 keeps its handle deleting while the object stands as it was, and lets it go once that moved", async () => {
    await registry.open(id, openWish, patient);
    on.cluster.plan.fail("deleteSandbox", ...Array<"late">(50).fill("late"));
    const deleting = registry.destroy(id, { ...suspendWish, stopTimeoutMs: 1_000, deleteDisk: true }, patient);
    expect(await on.clock.runUntilSettled(reasonOf(deleting))).toBe("DELETE_UNCONFIRMED");
    expect(await reasonOf(run())).toBe("WORKSPACE_DELETING");
    on.cluster.foreignMode(id, "Running");
    expect(new Set(on.cluster.deliverLate())).toEqual(new Set(["refused"]));
    expect((await run()).at(-1)?.t).toBe("exited");
  });
});

describe("a delete that got no answer, and landed", () => {
  it("is found to have landed by the look that shows that nothing is left", async () => {
    await registry.open(id, openWish, patient);
    on.cluster.plan.fail("deleteSandbox", ...Array<"late">(50).fill("late"));
    const deleting = registry.destroy(id, { ...suspendWish, stopTimeoutMs: 1_000, deleteDisk: true }, patient);
    expect(await on.clock.runUntilSettled(reasonOf(deleting))).toBe("DELETE_UNCONFIRMED");
    expect(on.cluster.deliverLate()[0]).toBe("applied");
    expect(await reasonOf(registry.read(id, false, patient))).toBe("WORKSPACE_NOT_FOUND");
    expect(registry.size).toBe(0);
  });
});

describe("a fenced workspace through a registry", () => {
  const fenced = { ...openWish, fencing: { t: "epoch", epoch: holderEpochFrom(5) } } as const;
  const runUnder = (epoch: number) => collect(registry.execute(id, executionWish(), patient, holderEpochFrom(epoch)));

  it("L20 lends nobody's epoch: a caller beside the holder is refused, on the same handle", async () => {
    await registry.open(id, fenced, patient);
    expect(await runUnder(5)).toHaveLength(3);
    expect(await reasonOf(run())).toBe("HOLDER_EPOCH_REQUIRED");
    expect(await reasonOf(registry.open(id, openWish, patient))).toBe("HOLDER_EPOCH_REQUIRED");
    expect(await reasonOf(registry.suspend(id, suspendWish, patient))).toBe("HOLDER_EPOCH_REQUIRED");
    const stop = { stopTimeoutMs: 60_000, fencing: { t: "epoch", epoch: holderEpochFrom(4) } } as const;
    expect(await reasonOf(registry.suspendObject(id, stop, patient))).toBe("HOLDER_EPOCH_SUPERSEDED");
    expect(await reasonOf(registry.deleteObject(id, stop, patient))).toBe("HOLDER_EPOCH_SUPERSEDED");
    expect([registry.size, on.cluster.plan.writes]).toEqual([1, ["createSandbox"]]);
  });

  it("L17 is adopted silently by any call: read without an epoch, changed only under its own; nothing is stamped", async () => {
    on.cluster.seed(id, { stamps: { holderEpoch: "5" } });
    const list = (workspace: Workspace) => workspace.files.list("", patient);
    expect(await collect(registry.stream(id, patient, list))).toBeDefined();
    expect(await reasonOf(run())).toBe("HOLDER_EPOCH_REQUIRED");
    expect(await reasonOf(runUnder(6))).toBe("HOLDER_EPOCH_NOT_TAKEN");
    expect(await runUnder(5)).toHaveLength(3);
    expect(on.cluster.plan.writes).toEqual([]);
  });

  it("is read with the epoch that stands, though another replica has taken it over", async () => {
    await registry.open(id, fenced, patient);
    on.cluster.foreignFence(id, 8);
    expect((await registry.read(id, false, patient)).view.holderEpoch).toBe(8);
    const elsewhere = new WorkspaceRegistry(on.deps);
    expect((await elsewhere.read(id, false, patient)).view.holderEpoch).toBe(8);
    on.cluster.stored(id).stamps.holderEpoch = "latest";
    expect((await elsewhere.read(id, false, patient)).view.holderEpoch).toBeUndefined();
  });
});

describe("Get of a workspace that is open here", () => {
  it("does not say running where it could not look", async () => {
    await registry.open(id, openWish, patient);
    on.cluster.foreignMode(id, "Suspended");
    on.cluster.plan.fail("readSandbox", "unavailable");
    expect((await registry.read(id, false, patient)).view.state).toBe("suspended");
    on.cluster.plan.fail("readSandbox", "unavailable", "unavailable");
    expect(await reasonOf(registry.read(id, false, patient))).toBe("CLUSTER_UNAVAILABLE");
  });

  it("does not call running what somebody suspended, deleted, or whose pod is gone", async () => {
    await registry.open(id, openWish, patient);
    on.cluster.foreignMode(id, "Suspended");
    expect((await registry.read(id, false, patient)).view.state).toBe("suspending");
    await registry.resume(id, { readyTimeoutMs: 60_000 }, patient);
    on.cluster.stored(id).pods = [];
    expect((await registry.read(id, false, patient)).view).toMatchObject({
      state: "not_ready",
      transition: { cause: "guestLost" },
    });
    on.cluster.replacePod(id);
    expect((await run()).at(-1)?.t).toBe("exited");
    on.cluster.foreignDelete(id);
    expect(await reasonOf(registry.read(id, false, patient))).toBe("WORKSPACE_NOT_FOUND");
  });

  it("whose pod was lost tells what stands by now, though nobody has called it since", async () => {
    await registry.open(id, openWish, patient);
    const state = async () => (await registry.read(id, false, patient)).view.state;
    on.cluster.stored(id).pods = [];
    expect(await state()).toBe("not_ready");
    on.cluster.replacePod(id);
    expect(await state()).toBe("running");
    on.cluster.foreignMode(id, "Suspended");
    expect(await state()).toBe("suspended");
  });

  it("shows the pod as it is now, and the guest's health when asked", async () => {
    await registry.open(id, openWish, patient);
    const [pod] = on.cluster.pods(id);
    if (!pod) expect.unreachable();
    pod.restartCount = 3;
    pod.lastTermination = "Error, exit 137";
    pod.termination = { reason: "Error", exitCode: 137, finishedAt: undefined };
    const { view, health } = await registry.read(id, true, patient);
    expect(view).toMatchObject({
      state: "running",
      origin: "created",
      pod: { restartCount: 3, lastTermination: "Error, exit 137", termination: { reason: "Error", exitCode: 137 } },
    });
    expect(health?.serving).toBe(true);
  });

  describe("and what its guest says to use", () => {
    const use = {
      disk: { totalBytes: 10n, usedBytes: 6n, availableBytes: 3n, inodes: undefined },
      memory: { usedBytes: 5n, workingSetBytes: undefined, limitBytes: undefined },
    };
    const agent = () => on.guests.agent(on.cluster.pods(id)[0]?.uid ?? expect.unreachable());
    /** An agent that tells its use where it is asked for it. */
    const openTelling = async () => {
      await registry.open(id, openWish, patient);
      const { health } = agent();
      agent().health = async (within, what) => ({ ...(await health(within)), ...(what?.use && { use }) });
      on.guests.calls.length = 0;
    };

    it("is shown beside its pod where health is asked for, and dials nobody where it is not", async () => {
      await openTelling();
      expect((await registry.read(id, false, patient)).view.pod?.use).toBeUndefined();
      expect(on.guests.calls).toEqual([]);
      expect((await registry.read(id, true, patient)).view.pod?.use).toEqual(use);
      expect(on.guests.count("health")).toBe(1);
    });

    it("is not asked for where the workspace is not open here", async () => {
      await openTelling();
      registry.close(id);
      const { view, health } = await registry.read(id, true, patient);
      expect([view.pod?.use, health]).toEqual([undefined, undefined]);
      expect(on.guests.calls).toEqual([]);
    });

    it("is not shown of a guest that is older, nor of one that does not answer in time", async () => {
      await registry.open(id, openWish, patient);
      expect((await registry.read(id, true, patient)).view.pod).not.toHaveProperty("use");
      agent().health = (within) => silence(within);
      const read = registry.read(id, true, patient);
      await settleTasks();
      expect((await on.clock.runUntilSettled(read)).view.pod).not.toHaveProperty("use");
    });
  });

  it("tells what this process holds open for its callers, also once its handle was let go", async () => {
    await registry.open(id, openWish, patient);
    const gate = Promise.withResolvers<void>();
    const agent = on.guests.agent(on.cluster.pods(id)[0]?.uid ?? expect.unreachable());
    const { execute } = agent;
    agent.execute = async function* (wish, signal) {
      await gate.promise;
      yield* execute(wish, signal);
    };
    const live = async () => (await registry.read(id, false, patient)).view.live;
    const running = run();
    await settleTasks();
    const one = { executions: 1, sessions: 0, ports: 0 };
    expect(await live()).toEqual(one);
    registry.close(id);
    expect(registry.stateOf(id)).toBeUndefined();
    expect(await live()).toEqual(one);
    gate.resolve();
    await running;
    expect(await live()).toEqual({ executions: 0, sessions: 0, ports: 0 });
  });

  it("leaves health out when the guest does not answer in time", async () => {
    await registry.open(id, openWish, patient);
    const pod = on.cluster.pods(id)[0]?.uid ?? expect.unreachable();
    on.guests.agent(pod).health = (within) =>
      new Promise((_, reject) => within.signal.addEventListener("abort", () => reject(within.signal.reason)));
    const read = registry.read(id, true, patient);
    await settleTasks();
    const { view, health } = await on.clock.runUntilSettled(read);
    expect(view.state).toBe("running");
    expect(health).toBeUndefined();
  });

  it("L40 leaves out what a guest said whose pod is not the view's any more", async () => {
    await registry.open(id, openWish, patient);
    const gate = on.cluster.plan.hold("readSandbox");
    const reading = registry.read(id, true, patient);
    await gate.reached;
    await settleTasks(); // The guest has answered.
    on.cluster.foreignMode(id, "Suspended");
    gate.release();
    const { view, health } = await reading;
    expect([view.state, view.identity.podUid, view.identity.bootId]).toEqual(["suspending", undefined, undefined]);
    expect(health).toBeUndefined();
  });

  it("says STARTING while an Open is on its way", async () => {
    const gate = on.cluster.plan.hold("createSandbox");
    const opening = registry.open(id, openWish, patient);
    await gate.reached;
    expect((await registry.read(id, false, patient)).view.state).toBe("starting");
    expect(await reasonOf(run())).toBe("WORKSPACE_NOT_READY");
    gate.release();
    await opening;
  });
});
