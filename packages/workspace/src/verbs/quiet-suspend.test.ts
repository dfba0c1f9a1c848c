import { HoldfastError } from "@holdfast/errors";
import {
  type AgentScript,
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
import { GuestLost, GuestNotReached } from "../ports/guest.ts";
import type { SuspendWish } from "../wishes.ts";
import { Workspace } from "../workspace.ts";

const id = workspaceId("demo");
const quiet = { ...suspendWish, quiesce: { graceMs: undefined } };
const declined = { ...suspendWish, flush: { enabled: false, timeoutMs: 1 } };
const everything = ["executions", "files", "holder-epoch", "probe", "quiesce", "flush", "sessions"] as const;
let on: Stage;
let workspace: Workspace;

/** A guest that announces these features. */
async function openWith(features: readonly string[], shape: (script: AgentScript) => void = () => undefined) {
  on = stage();
  on.guests.shape = (script) => {
    const { health } = script;
    script.health = async (within) => ({ ...(await health(within)), features });
    shape(script);
  };
  workspace = new Workspace(id, on.deps);
  await workspace.open(openWish, patient);
  on.cluster.plan.requests.length = 0;
  on.guests.calls.length = 0;
}

beforeEach(() => openWith(everything));

const writes = () => on.cluster.plan.writes;
const verbs = () => on.guests.calls.map(({ verb }) => verb).filter((verb) => verb !== "health");
const pod = () => {
  const [first] = on.cluster.pods(id);
  if (!first) throw new Error("no pod stands");
  return first;
};
const agent = () => on.guests.agent(pod().uid);
const serves = async () => expect(await collect(workspace.execute(executionWish(), patient))).toHaveLength(3);

/** What a suspend came to that was refused: its error; it must still serve, and nothing may have been written. */
async function refusedSuspend(wish: SuspendWish = quiet): Promise<HoldfastError> {
  const error = await on.clock.runUntilSettled(workspace.suspend(wish, patient)).catch((caught: unknown) => caught);
  if (!(error instanceof HoldfastError)) throw new Error(`not refused: ${String(error)}`);
  expect(writes()).toEqual([]);
  expect(workspace.state.t).toBe("active");
  await serves();
  return error;
}

describe("L25 the order of a suspend", () => {
  it("is gate, terminals, quiesce, flush, patch", async () => {
    const order: string[] = [];
    const { readSandbox, setMode } = on.cluster;
    on.cluster.readSandbox = async (name, within) => {
      if (order.length === 0) order.push("gate");
      return await readSandbox.call(on.cluster, name, within);
    };
    on.cluster.setMode = async (wish, within) => {
      order.push("patch");
      return await setMode.call(on.cluster, wish, within);
    };
    for (const verb of ["releaseSessions", "quiesce", "flush"] as const) {
      const real = agent()[verb] as (...args: never[]) => Promise<never>;
      Object.assign(agent(), {
        [verb]: async (...args: never[]) => {
          order.push(verb);
          return await real(...args);
        },
      });
    }
    const { view, flush, quiesce } = await workspace.suspend(quiet, patient);
    expect(order).toEqual(["gate", "releaseSessions", "quiesce", "flush", "patch"]);
    expect([view.state, flush.outcome, quiesce?.outcome]).toEqual(["suspended", "flushed", "quiesced"]);
  });

  it("sends no patch before a slow quiesce has answered", async () => {
    let answer: (() => void) | undefined;
    const { quiesce } = agent();
    agent().quiesce = async (order, within) => {
      await new Promise<void>((resolve) => {
        answer = resolve;
      });
      return await quiesce(order, within);
    };
    const suspending = workspace.suspend(quiet, patient);
    await settleTasks();
    expect(writes()).toEqual([]);
    answer?.();
    expect((await suspending).view.state).toBe("suspended");
  });
});

describe("L26 a guest that can flush", () => {
  it("is asked, by default, with the time that the caller gave, and the report says how long it took", async () => {
    let asked = 0;
    agent().flush = async (timeoutMs) => {
      asked = timeoutMs;
      return { tookMs: 17 };
    };
    const wish = { ...suspendWish, flush: { enabled: true, timeoutMs: 4_321 } };
    expect((await workspace.suspend(wish, patient)).flush).toEqual({ outcome: "flushed", cause: "", tookMs: 17 });
    expect(asked).toBe(4_321);
  });

  it.each([
    ["answers that it could not", () => Promise.reject(new HoldfastError("FLUSH_UNCONFIRMED", { message: "EIO" }))],
    ["breaks off after it was asked", () => Promise.reject(new GuestLost("the link broke"))],
    ["answers something else", () => Promise.reject(new HoldfastError("INTERNAL_ERROR", { message: "what?" }))],
    ["falls silent", (_: number, within: Parameters<typeof silence>[0]) => silence(within)],
  ])("and %s stops the suspend: FLUSH_UNCONFIRMED, nothing is patched, and it still serves", async (_why, flush) => {
    agent().flush = flush;
    expect(await refusedSuspend(suspendWish)).toMatchObject({ reason: "FLUSH_UNCONFIRMED" });
    agent().flush = async () => ({ tookMs: 1 });
    expect((await workspace.suspend(suspendWish, patient)).flush.outcome).toBe("flushed");
  });

  it("is waited for a little longer than it was given, so that its own word counts: 2 s, and no longer", async () => {
    const answeringAfter = (ms: number) => {
      agent().flush = (_, within) =>
        Promise.race([
          silence(within),
          new Promise<{ tookMs: number }>((resolve) => on.clock.schedule(ms, () => resolve({ tookMs: ms }))),
        ]);
    };
    answeringAfter(12_001);
    expect(await refusedSuspend(suspendWish)).toMatchObject({ metadata: { why: "silent" } });
    answeringAfter(11_999);
    const { flush } = await on.clock.runUntilSettled(workspace.suspend(suspendWish, patient));
    expect(flush).toMatchObject({ outcome: "flushed", tookMs: 11_999 });
  });

  it.each([
    ["the image has no flush after all", new HoldfastError("GUEST_FEATURE_MISSING", { message: "no" }), "unsupported"],
    ["it is stopping", new HoldfastError("AGENT_RETIRING", { message: "stopping" }), "unreachable"],
    ["it is not reached", new GuestNotReached("no-connection", "refused"), "unreachable"],
  ])("and where %s the suspend goes ahead, and the report says what is safe", async (_why, error, outcome) => {
    agent().flush = () => Promise.reject(error);
    const { flush, view } = await workspace.suspend(suspendWish, patient);
    expect(flush).toMatchObject({ outcome, cause: expect.stringContaining("fsynced is safe") });
    expect(view.state).toBe("suspended");
  });

  it("says agent_retiring where the agent is stopping", async () => {
    const { health } = agent();
    agent().health = async (within) => ({ ...(await health(within)), serving: false });
    expect((await workspace.suspend(suspendWish, patient)).flush).toMatchObject({
      outcome: "unreachable",
      cause: expect.stringContaining("agent_retiring"),
    });
    expect(on.guests.count("flush")).toBe(0);
  });

  it("is not sent to an image without the feature", async () => {
    await openWith(["executions", "files", "probe"]);
    expect((await workspace.suspend(suspendWish, patient)).flush.outcome).toBe("unsupported");
    expect(on.guests.count("flush")).toBe(0);
  });

  it("is UNREACHABLE, not skipped, where a pod lives that cannot be asked; SKIPPED where none does", async () => {
    const fresh = new Workspace(id, on.deps);
    pod().ready = false;
    expect((await fresh.suspend(suspendWish, patient)).flush).toMatchObject({
      outcome: "unreachable",
      cause: expect.stringContaining("namzu-ws-demo"),
    });
    await openWith(everything);
    Object.assign(pod(), { phase: "Failed", ready: false });
    expect((await new Workspace(id, on.deps).suspend(suspendWish, patient)).flush.outcome).toBe("skipped");
  });

  it.each([
    ["whose pod has another address by now", () => void on.cluster.movePod(id, "10.9.9.9")],
    [
      "whose pooled connection leads nowhere",
      () => {
        const { health } = agent();
        let asked = 0;
        agent().health = (within) => (asked++ === 0 ? silence(within) : health(within));
      },
    ],
  ])("is asked over a new connection, %s", async (_why, prepare) => {
    prepare();
    const { flush, quiesce } = await on.clock.runUntilSettled(workspace.suspend(quiet, patient));
    expect([flush.outcome, quiesce?.outcome]).toEqual(["flushed", "quiesced"]);
  });

  it("asks the pod that somebody else woke since this handle suspended it", async () => {
    await workspace.suspend(suspendWish, patient);
    on.cluster.foreignMode(id, "Running");
    expect((await workspace.suspend(suspendWish, patient)).flush.outcome).toBe("flushed");
  });

  it("L24 starts over from the gate when its pod was replaced after it had been flushed", async () => {
    const first = pod().uid;
    agent().flush = async () => {
      on.cluster.replacePod(id);
      return { tookMs: 1 };
    };
    const { view } = await on.clock.runUntilSettled(workspace.suspend(suspendWish, patient));
    expect(view.state).toBe("suspended");
    const flushed = on.guests.calls.filter(({ verb }) => verb === "flush").map(({ pod: uid }) => uid);
    expect(flushed).toHaveLength(2);
    expect(flushed[0]).toBe(first);
    expect(flushed[1]).not.toBe(first);
    expect(writes()).toEqual(["setMode"]);
  });

  it("L22 is fenced and asked again where it has not heard of the stored epoch yet", async () => {
    on.cluster.stored(id).stamps.holderEpoch = "7";
    const fencing = { t: "epoch", epoch: 7 as never } as const;
    expect((await workspace.suspend({ ...suspendWish, fencing }, patient)).flush.outcome).toBe("flushed");
    expect(verbs()).toEqual(["releaseSessions", "flush", "fence", "flush"]);
  });

  it("L22 does not believe a guest that a higher epoch exists: the object decides", async () => {
    agent().flush = () => Promise.reject(new HoldfastError("HOLDER_EPOCH_SUPERSEDED", { message: "9 stands" }));
    expect(await refusedSuspend(suspendWish)).toMatchObject({ reason: "FLUSH_UNCONFIRMED" });
    agent().flush = () => {
      on.cluster.stored(id).stamps.holderEpoch = "9";
      return Promise.reject(new HoldfastError("HOLDER_EPOCH_SUPERSEDED", { message: "9 stands" }));
    };
    await expect(workspace.suspend(suspendWish, patient)).rejects.toMatchObject({ reason: "HOLDER_EPOCH_REQUIRED" });
    expect(writes()).toEqual([]);
  });
});

describe("L27 a quiesce that was asked for", () => {
  it("is not, by default", async () => {
    expect((await workspace.suspend(suspendWish, patient)).quiesce).toBeUndefined();
    expect(on.guests.count("quiesce")).toBe(0);
  });

  it("passes the grace on, and holds the guest quiet for as long as the suspend may take; the hold is kept once it applied", async () => {
    const orders: unknown[] = [];
    const { quiesce } = agent();
    agent().quiesce = async (order, within) => {
      orders.push(order);
      return await quiesce(order, within);
    };
    await workspace.suspend({ ...quiet, quiesce: { graceMs: 4_999 } }, patient);
    expect(orders).toEqual([{ graceMs: 4_999, holdMs: 130_000 }]);
    expect(on.guests.count("releaseQuiesce")).toBe(0);
  });

  it("reports what it reached, and says so where that was not the whole pod", async () => {
    const stopped = [{ pid: 7, name: "make", lastSignal: "SIGKILL" }];
    agent().quiesce = async () => ({
      scope: "owned_sessions",
      rounds: 2,
      stopped,
      stoppedCount: 1,
      notReached: [{ pid: 9, name: "cron", lastSignal: "" }],
      holdId: "hold-1",
    });
    expect((await workspace.suspend(quiet, patient)).quiesce).toMatchObject({
      outcome: "quiesced",
      scope: "owned_sessions",
      cause: expect.stringContaining("cannot see the whole pod"),
      rounds: 2,
      stopped,
      notReached: [{ name: "cron" }],
    });
  });

  it.each([
    ["the image does not announce it", ["executions", "flush", "probe"], undefined],
    ["it turns out to be missing", everything, new HoldfastError("GUEST_FEATURE_MISSING", { message: "no" })],
  ])("lets the suspend go ahead without where %s, which the report says", async (_why, features, error) => {
    await openWith(features);
    if (error) agent().quiesce = () => Promise.reject(error);
    const { quiesce, view } = await workspace.suspend(quiet, patient);
    expect([quiesce?.outcome, view.state]).toEqual(["unsupported", "suspended"]);
    expect(on.guests.count("quiesce")).toBe(error ? 1 : 0);
  });

  it.each([
    [
      "is not confirmed",
      new HoldfastError("QUIESCE_UNCONFIRMED", { message: "12", metadata: { pids: "12" } }),
      "refused",
    ],
    ["broke off", new GuestLost("the link broke"), "silent"],
    ["did not arrive", new GuestNotReached("no-connection", "refused"), "unreachable"],
  ])("and %s stops the suspend with no patch", async (_why, error, why) => {
    agent().quiesce = () => Promise.reject(error);
    expect(await refusedSuspend()).toMatchObject({ reason: "QUIESCE_UNCONFIRMED", metadata: { why } });
    expect(on.guests.count("flush")).toBe(0);
  });

  it("and a silent guest stops it within the guest's own bound", async () => {
    agent().quiesce = (_, within) => silence(within);
    const late = on.clock.runUntilSettled(workspace.suspend(quiet, patient), 26_001);
    await expect(late).rejects.toMatchObject({ reason: "QUIESCE_UNCONFIRMED", metadata: { why: "silent" } });
    expect(writes()).toEqual([]);
  });

  it.each(["no-connection", "token-refused", "retiring"] as const)(
    "and a guest that cannot be asked (%s) stops it, though the flush alone would not",
    async (why) => {
      agent().unreached = why;
      const refused = workspace.suspend(quiet, patient);
      await expect(refused).rejects.toMatchObject({ reason: "QUIESCE_UNCONFIRMED", metadata: { why: "unreachable" } });
      expect(writes()).toEqual([]);
      expect((await workspace.suspend(suspendWish, patient)).flush.outcome).toBe("unreachable");
    },
  );

  it("stops it where somebody else suspended the workspace meanwhile", async () => {
    on.cluster.habits.podsEnd = false;
    on.cluster.foreignMode(id, "Suspended");
    await expect(workspace.suspend(quiet, patient)).rejects.toMatchObject({ reason: "QUIESCE_UNCONFIRMED" });
  });

  it("is SKIPPED where its pod had ended, and where the workspace was suspended already", async () => {
    Object.assign(pod(), { phase: "Failed", ready: false });
    agent().unreached = "no-connection"; // As an agent in a pod that has ended is.
    expect((await workspace.suspend(quiet, patient)).quiesce?.outcome).toBe("skipped");
    expect((await workspace.suspend(quiet, patient)).quiesce?.outcome).toBe("skipped");
    await openWith(everything);
    Object.assign(pod(), { phase: "Failed", ready: false });
    const fresh = new Workspace(id, on.deps);
    expect((await fresh.suspend(quiet, patient)).quiesce?.outcome).toBe("skipped");
  });

  it.each([
    ["quiesce", "QUIESCE_UNCONFIRMED", 0],
    ["flush", "FLUSH_UNCONFIRMED", 1],
  ] as const)(
    "and a stop_timeout that ends while the guest is asked for a %s stops it too, in that time",
    async (verb, reason, released) => {
      agent()[verb] = (_: unknown, within: Parameters<typeof silence>[0]) => silence(within);
      const flush = { enabled: true, timeoutMs: 600_000 };
      const wish = { ...suspendWish, quiesce: { graceMs: 4_999 }, flush, stopTimeoutMs: 1_000 };
      const suspending = on.clock.runUntilSettled(workspace.suspend(wish, patient), 1_001);
      await expect(suspending).rejects.toMatchObject({
        reason,
        message: expect.stringContaining("1000 ms"),
        metadata: { why: "silent", sessions_released: "true" },
      });
      expect([writes(), workspace.state.t]).toEqual([[], "active"]);
      await serves();
      expect(on.guests.count("releaseQuiesce")).toBe(released);
    },
  );

  it("lets the guest go on when the flush after it stops the suspend", async () => {
    agent().flush = () => Promise.reject(new GuestLost("the link broke"));
    expect(await refusedSuspend()).toMatchObject({ reason: "FLUSH_UNCONFIRMED" });
    expect(on.guests.count("releaseQuiesce")).toBe(1);
  });

  it.each([
    [
      "the flush after it",
      () => {
        agent().flush = () => Promise.reject(new GuestLost("the link broke"));
      },
    ],
    ["the patch", () => on.cluster.plan.fail("setMode", "refuse")],
    [
      "the gate, asked again by a guest's word,",
      () => {
        agent().flush = async () => {
          on.cluster.foreignFence(id, 9);
          throw new HoldfastError("HOLDER_EPOCH_REQUIRED", { message: "no", metadata: { stored: "9" } });
        };
      },
    ],
  ])("that ended programs is told by the error where %s then stops the suspend", async (_what, prepare) => {
    const { quiesce } = agent();
    agent().quiesce = async (...asked) => ({ ...(await quiesce(...asked)), stoppedCount: 2 });
    prepare();
    const error = await workspace.suspend(quiet, patient).catch((caught: unknown) => caught);
    expect(error).toMatchObject({
      message: expect.stringContaining("2 programs"),
      metadata: { programs_stopped: "2" },
    });
    expect(error).not.toMatchObject({ message: expect.stringContaining("as they were") });
  });

  it("lets the guest go on when the patch is refused", async () => {
    on.cluster.plan.fail("setMode", "refuse");
    await expect(workspace.suspend(quiet, patient)).rejects.toMatchObject({ reason: "CLUSTER_WRITE_REFUSED" });
    expect(on.guests.count("releaseQuiesce")).toBe(1);
    await serves();
  });

  it("lets the guest go on when it cannot be told whether the pods are still those that were asked", async () => {
    const patch = on.cluster.plan.hold("setMode");
    const suspending = workspace.suspend(quiet, patient);
    await patch.reached;
    const stored = on.cluster.stored(id); // The controller writes its status.
    stored.resourceVersion = String(Number(stored.resourceVersion) + 1);
    on.cluster.plan.fail("readPods", "unavailable");
    patch.release();
    await expect(suspending).rejects.toMatchObject({ reason: "CLUSTER_UNAVAILABLE" });
    expect([stored.mode, workspace.state.t, on.guests.count("releaseQuiesce")]).toEqual(["Running", "active", 1]);
    await serves();
  });

  it("lets the guest go on when its pods cannot be looked at before the patch, and says so", async () => {
    agent().flush = async () => {
      on.cluster.plan.fail("readPods", "unavailable");
      return { tookMs: 1 };
    };
    expect(await refusedSuspend()).toMatchObject({ reason: "CLUSTER_UNAVAILABLE" });
    expect(on.guests.count("releaseQuiesce")).toBe(1);
  });

  it("lets a guest go on that is not bound here, too, when the patch is refused, and keeps no connection", async () => {
    on.cluster.plan.fail("setMode", "refuse");
    const fresh = new Workspace(id, on.deps);
    const released: string[] = [];
    agent().releaseQuiesce = async (holdId) => void released.push(holdId);
    await expect(fresh.suspend(quiet, patient)).rejects.toMatchObject({ reason: "CLUSTER_WRITE_REFUSED" });
    expect(released).toEqual(["hold-1"]);
    expect(on.guests.closed).toHaveLength(2);
  });

  it("lets the guest go on when somebody woke the workspace before its pod was stopped", async () => {
    on.cluster.habits.controller = false;
    const suspending = workspace.suspend(quiet, patient);
    await settleTasks();
    on.cluster.foreignMode(id, "Running");
    await expect(suspending).rejects.toMatchObject({ reason: "SUSPEND_OVERTAKEN" });
    expect(on.guests.count("releaseQuiesce")).toBe(1);
  });

  it("leaves the hold to its lease when nobody knows whether the patch landed", async () => {
    on.cluster.plan.fail("setMode", "late");
    const gate = on.cluster.plan.hold("setMode");
    const suspending = workspace.suspend({ ...quiet, stopTimeoutMs: 30_000 }, patient);
    await gate.reached;
    on.cluster.plan.fail("readSandbox", "unavailable");
    gate.release();
    await expect(on.clock.runUntilSettled(suspending)).rejects.toMatchObject({ reason: expect.any(String) });
    expect(workspace.state.t).toBe("suspending");
    expect(on.guests.count("releaseQuiesce")).toBe(0);
  });

  it("is asked anew, and the first hold released, when somebody wrote between quiesce and patch", async () => {
    const patch = on.cluster.plan.hold("setMode");
    const suspending = workspace.suspend(quiet, patient);
    await patch.reached;
    on.cluster.stored(id).stamps.writtenBy = "somebody";
    patch.release();
    expect((await on.clock.runUntilSettled(suspending)).quiesce?.outcome).toBe("quiesced");
    expect([on.guests.count("quiesce"), on.guests.count("releaseQuiesce")]).toEqual([2, 1]);
  });
});

describe("L28 from suspending", () => {
  const unconfirmed = async () => {
    on.cluster.habits.podsEnd = false;
    const first = workspace.suspend({ ...suspendWish, stopTimeoutMs: 1_000 }, patient);
    await on.clock.runUntilSettled(first).catch(() => undefined);
    expect(workspace.state.t).toBe("suspending");
    on.guests.calls.length = 0;
  };

  it("the guest is not asked again: the flush is SKIPPED", async () => {
    await unconfirmed();
    const again = workspace.suspend(suspendWish, patient);
    await settleTasks();
    on.cluster.endPods(id);
    expect((await again).flush.outcome).toBe("skipped");
    expect(on.guests.calls).toEqual([]);
  });

  it("an explicit quiesce is refused, and nothing is sent for it", async () => {
    await unconfirmed();
    const sent = writes().length;
    await expect(workspace.suspend(quiet, patient)).rejects.toMatchObject({
      reason: "QUIESCE_UNCONFIRMED",
      metadata: { why: "suspending" },
    });
    expect([writes().length, on.guests.calls]).toEqual([sent, []]);
    expect(workspace.state.t).toBe("suspending");
  });
});

describe("L3 a joiner", () => {
  it("that wants a quiesce which the flight does not perform is refused, and nothing is sent for it", async () => {
    on.cluster.habits.podsEnd = false;
    const flight = workspace.suspend(suspendWish, patient);
    await settleTasks();
    await expect(workspace.suspend(quiet, patient)).rejects.toMatchObject({
      reason: "QUIESCE_UNCONFIRMED",
      metadata: { why: "suspend_already_in_flight" },
    });
    on.cluster.endPods(id);
    await flight;
    expect([writes(), on.guests.count("quiesce")]).toEqual([["setMode"], 0]);
  });

  it("that has longer is told how long the flight has had, not how long it was to have", async () => {
    on.cluster.habits.podsEnd = false;
    const brief = workspace.suspend({ ...suspendWish, stopTimeoutMs: 1_000 }, patient).catch(() => undefined);
    await on.clock.advance(500);
    const joining = workspace.suspend({ ...suspendWish, stopTimeoutMs: 10_000 }, patient);
    await expect(on.clock.runUntilSettled(joining)).rejects.toMatchObject({
      reason: "SUSPEND_UNCONFIRMED",
      message: expect.stringContaining("10500 ms"),
      metadata: { budget_ms: "10500", pod: "namzu-ws-demo" },
    });
    await brief;
  });

  it("of a quiescing suspend shares its outcome, plain or quiescing: one quiesce, one patch", async () => {
    const all = await Promise.all([
      workspace.suspend(quiet, patient),
      workspace.suspend(declined, patient),
      workspace.suspend(quiet, patient),
    ]);
    expect(all.map(({ quiesce }) => quiesce?.outcome)).toEqual(["quiesced", "quiesced", "quiesced"]);
    expect([on.guests.count("quiesce"), writes()]).toEqual([1, ["setMode"]]);
  });

  it("destroy without delete_disk quiesces like the suspend that it is", async () => {
    const { quiesce } = await workspace.destroy({ ...quiet, deleteDisk: false }, patient);
    expect([quiesce?.outcome, on.guests.count("quiesce"), writes()]).toEqual(["quiesced", 1, ["setMode"]]);
  });
});

describe("L29 terminals", () => {
  it("are released before anything else is asked of the guest, with a reason that names the suspend", async () => {
    await workspace.suspend(quiet, patient);
    expect(verbs()).toEqual(["releaseSessions", "quiesce", "flush"]);
  });

  it("that were ended for a suspend which is then refused stay ended, and the error says so", async () => {
    on.cluster.plan.fail("setMode", "refuse");
    await expect(workspace.suspend(suspendWish, patient)).rejects.toMatchObject({
      reason: "CLUSTER_WRITE_REFUSED",
      message: expect.stringContaining("stay so"),
      metadata: { sessions_released: "true" },
    });
    agent().flush = () => Promise.reject(new GuestLost("the link broke"));
    await expect(workspace.suspend(suspendWish, patient)).rejects.toMatchObject({
      reason: "FLUSH_UNCONFIRMED",
      metadata: { sessions_released: "true" },
    });
  });

  it("L34 are released before a delete, too, and left open by one that its gate refuses", async () => {
    const remove = { ...declined, deleteDisk: true };
    on.cluster.stored(id).stamps.holderEpoch = "5";
    await expect(workspace.destroy(remove, patient)).rejects.toMatchObject({ reason: "HOLDER_EPOCH_REQUIRED" });
    expect(on.guests.calls).toEqual([]);
    on.cluster.stored(id).stamps.holderEpoch = undefined;
    await workspace.destroy(remove, patient);
    expect(verbs()).toEqual(["releaseSessions"]);
  });

  it("L35 are released without waiting when a call notices that somebody else suspended the workspace", async () => {
    on.cluster.habits.podsEnd = false;
    agent().releaseSessions = () => new Promise(() => undefined);
    agent().execute = async function* () {
      on.cluster.foreignMode(id, "Suspended");
      yield* [];
      throw new GuestLost("the link broke");
    };
    await expect(collect(workspace.execute(executionWish(), patient))).rejects.toMatchObject({
      reason: "WORKSPACE_SUSPENDED",
      metadata: { noticed_by: "TRANSPORT" },
    });
    expect(on.guests.count("releaseSessions")).toBe(1);
  });

  it("are left open by a suspend that its gate refuses", async () => {
    on.cluster.stored(id).stamps.holderEpoch = "5";
    await expect(workspace.suspend(suspendWish, patient)).rejects.toMatchObject({ reason: "HOLDER_EPOCH_REQUIRED" });
    expect(on.guests.calls).toEqual([]);
  });

  it("of a guest that does not answer stop no suspend, and hold it up for no longer than a bound", async () => {
    agent().releaseSessions = () => Promise.reject(new GuestLost("the link broke"));
    expect((await workspace.suspend(suspendWish, patient)).view.state).toBe("suspended");
    await openWith(everything, (script) => {
      script.releaseSessions = () => new Promise(() => undefined);
    });
    expect((await on.clock.runUntilSettled(workspace.suspend(suspendWish, patient), 2_001)).view.state).toBe(
      "suspended",
    );
  });
});
