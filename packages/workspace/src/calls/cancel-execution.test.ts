import { holderEpochFrom } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import {
  type AgentScript,
  collect,
  executionId,
  executionWish,
  openWish,
  patient,
  type Stage,
  silence,
  stage,
  suspendWish,
  workspaceId,
} from "@holdfast/testkit";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { EventSubscription } from "../events/workspace-events.ts";
import { GuestLost } from "../ports/guest.ts";
import { Workspace } from "../workspace.ts";

const id = workspaceId("demo");
const x1 = executionId("x1");
let on: Stage;
let workspace: Workspace;
let heard: EventSubscription;
let mayMove: boolean;
let first: { readonly podUid: string; readonly bootId: string };

beforeEach(async () => {
  mayMove = false;
  on = stage();
  workspace = new Workspace(id, on.deps);
  await workspace.open(openWish, patient);
  heard = workspace.events.subscribe();
  const { podUid = "", bootId = "" } = workspace.view().identity;
  first = { podUid, bootId };
  on.cluster.plan.requests.length = 0;
  on.guests.calls.length = 0;
});

const agent = (): AgentScript => on.guests.agent(first.podUid as never);
const unconfirmed = () =>
  new HoldfastError("CANCELLATION_UNCONFIRMED", { message: "12", metadata: { survivors: "12" } });
const survives = () => {
  agent().cancel = () => Promise.reject(unconfirmed());
};

/** What a cancel came to that was not confirmed, the event that stood in the queue by then, and what was told before it. */
async function failure(cancelling = workspace.cancelExecution(x1, patient)) {
  const error: unknown = await on.clock.runUntilSettled(cancelling).catch((caught: unknown) => caught);
  const before: string[] = [];
  for (;;) {
    const next = await heard.next(patient);
    if (next.t === "event" && next.event.t === "cancellation_unconfirmed") return { error, event: next.event, before };
    before.push(next.t === "event" ? next.event.t : next.t);
  }
}

afterEach(() => {
  const written = on.cluster.plan.writes.filter((verb) => verb !== "setMode" || !mayMove);
  expect(written).toEqual([]); // The command's pod is kept, whatever is found.
});

describe("L43 a cancellation", () => {
  it("that is confirmed is no event", async () => {
    expect(await workspace.cancelExecution(x1, patient)).toEqual({ alreadyEnded: false });
    expect(on.cluster.plan.requests).toEqual([]);
  });

  it("is waited for as long as the grace that was asked for takes, and the guest's look after it", async () => {
    let asked = 0;
    agent().cancel = (order, within) => {
      asked += 1;
      expect(order).toMatchObject({ graceMs: 60_000 });
      return Promise.race([
        silence(within),
        new Promise<{ alreadyEnded: boolean }>((resolve) =>
          on.clock.schedule(65_000, () => resolve({ alreadyEnded: false })),
        ),
      ]);
    };
    const order = { executionId: x1, graceMs: 60_000, expectedBootId: undefined };
    const cancelling = workspace.executionsUnder(undefined, "CancelExecution").cancel(order, patient);
    expect(await on.clock.runUntilSettled(cancelling)).toEqual({ alreadyEnded: false });
    expect(asked).toBe(1);
  });

  it("L22 is asked for again where the guest has not heard of the call's epoch yet, and the object has it", async () => {
    mayMove = true;
    const five = holderEpochFrom(5);
    await workspace.resume({ readyTimeoutMs: 60_000, fencing: { t: "epoch", epoch: five } }, patient);
    let asked = 0;
    agent().cancel = async () => {
      asked += 1;
      if (asked > 1) return { alreadyEnded: false };
      throw new HoldfastError("HOLDER_EPOCH_NOT_TAKEN", { message: "no", metadata: { stored: "0" } });
    };
    expect(await workspace.cancelExecution(x1, patient, five)).toEqual({ alreadyEnded: false });
    agent().cancel = () =>
      Promise.reject(new HoldfastError("HOLDER_EPOCH_NOT_TAKEN", { message: "no", metadata: { stored: "0" } }));
    await expect(workspace.cancelExecution(x1, patient, five)).rejects.toMatchObject({ reason: "WORKSPACE_NOT_READY" });
  });

  it("is asked for again, over fresh connections, until the guest confirms it", async () => {
    let asked = 0;
    agent().cancel = async () => {
      asked += 1;
      if (asked === 1) throw new GuestLost("the link broke");
      if (asked === 2) throw unconfirmed();
      return { alreadyEnded: true };
    };
    const done = on.clock.runUntilSettled(workspace.cancelExecution(x1, patient), 8_000);
    expect(await done).toEqual({ alreadyEnded: true });
    expect(on.guests.closed).toHaveLength(3);
  });

  it("is given up after 8 s of the service's clock: CANCELLATION_UNCONFIRMED, and the workspace runs on", async () => {
    survives();
    const before = on.clock.monotonicMs();
    const { error, event } = await failure();
    expect(on.clock.monotonicMs() - before).toBe(8_000);
    expect(error).toMatchObject({
      reason: "CANCELLATION_UNCONFIRMED",
      metadata: { survivors: "12", evidence: "same_guest", execution_id: "x1" },
    });
    expect(event).toMatchObject({ agent: "ok", evidence: "same_guest", previous: first, current: first });
    expect(event.error.reason).toBe("CANCELLATION_UNCONFIRMED");
    expect(await collect(workspace.execute(executionWish(), patient))).toHaveLength(3);
  });

  it("goes on for its own time though its caller goes away", async () => {
    let asked = 0;
    agent().cancel = async () => {
      asked += 1;
      throw unconfirmed();
    };
    const leaving = new AbortController();
    const cancelling = workspace.cancelExecution(x1, leaving.signal);
    leaving.abort(new Error("gone"));
    await expect(cancelling).rejects.toThrow("gone");
    await on.clock.advance(8_001);
    expect(asked).toBeGreaterThan(5);
    expect(await heard.next(patient)).toMatchObject({ event: { t: "cancellation_unconfirmed" } });
  });

  it("of a guest that knows nothing of the id is that answer, at once", async () => {
    agent().cancel = () => Promise.reject(new HoldfastError("EXECUTION_NOT_FOUND", { message: "none" }));
    await expect(workspace.cancelExecution(x1, patient)).rejects.toMatchObject({ reason: "EXECUTION_NOT_FOUND" });
  });

  it("L21 is judged by its epoch like any other change, and 68 a superseded one writes nothing", async () => {
    await workspace.open({ ...openWish, fencing: { t: "epoch", epoch: holderEpochFrom(5) } }, patient);
    on.cluster.plan.requests.length = 0;
    await expect(workspace.cancelExecution(x1, patient)).rejects.toMatchObject({ reason: "HOLDER_EPOCH_REQUIRED" });
    agent().cancel = () => {
      const message = "superseded, says the guest";
      return Promise.reject(new HoldfastError("HOLDER_EPOCH_SUPERSEDED", { message, metadata: { stored: "7" } }));
    };
    const cancel = () => workspace.cancelExecution(x1, patient, holderEpochFrom(5));
    await expect(cancel()).rejects.toMatchObject({ metadata: { why: "guest_epoch_unconfirmed" } });
    on.cluster.foreignFence(id, 7);
    await expect(cancel()).rejects.toMatchObject({
      reason: "HOLDER_EPOCH_SUPERSEDED",
      metadata: { operation: "CancelExecution", mine: "5", stored: "7" },
    });
  });

  it("that a guest forgot in between stays unconfirmed: the agent is ok, and nothing is written", async () => {
    let asked = 0;
    agent().cancel = async () => {
      asked += 1;
      throw asked === 1 ? unconfirmed() : new HoldfastError("EXECUTION_NOT_FOUND", { message: "none" });
    };
    const { error, event } = await failure();
    expect(error).toMatchObject({ reason: "CANCELLATION_UNCONFIRMED" });
    expect(event).toMatchObject({ agent: "ok", evidence: "same_guest" });
  });
});

describe("L43 the agent's health", () => {
  it.each([
    ["retiring, where it says that it does not serve", { serving: false }, "retiring"],
    ["ok, where it serves", { serving: true }, "ok"],
  ])("is %s", async (_what, says, health) => {
    survives();
    const real = agent().health;
    agent().health = async (within) => ({ ...(await real(within)), ...says });
    expect((await failure()).event.agent).toBe(health);
  });

  it("is unreachable for anything that is no answer", async () => {
    survives();
    agent().health = () => Promise.reject(new HoldfastError("INTERNAL_ERROR", { message: "what?" }));
    expect((await failure()).event.agent).toBe("unreachable");
  });
});

describe("L43 the evidence of what became of the guest", () => {
  it("is POD_REPLACED where another pod runs: GUEST_GONE with both, the current one's boot id unknown", async () => {
    survives();
    const next = on.cluster.replacePod(id);
    const { error, event } = await failure();
    expect(event).toMatchObject({ evidence: "pod_replaced", previous: first, agent: "unreachable" });
    expect(event.current).toEqual({ podUid: next.uid, bootId: undefined });
    expect(error).toMatchObject({
      reason: "GUEST_GONE",
      metadata: {
        previous_pod: first.podUid,
        previous_boot_id: first.bootId,
        current_pod: next.uid,
        current_boot_id: "",
      },
    });
    await collect(workspace.execute(executionWish(), patient));
    expect(workspace.view().identity.podUid).toBe(next.uid);
  });

  it("is POD_GONE where none is bound any more", async () => {
    survives();
    on.cluster.stored(id).pods = [];
    const { error, event } = await failure();
    expect(event).toMatchObject({ evidence: "pod_gone", current: undefined });
    expect(error).toMatchObject({ reason: "GUEST_GONE" });
  });

  it("is POD_GONE after a foreign suspend, whose error outranks it", async () => {
    survives();
    on.cluster.habits.podsEnd = false;
    on.cluster.foreignMode(id, "Suspended");
    const { error, event } = await failure();
    expect(event).toMatchObject({ evidence: "pod_gone", current: undefined });
    expect(error).toMatchObject({ reason: "WORKSPACE_SUSPENDED", metadata: { noticed_by: "TRANSPORT" } });
    expect(on.cluster.plan.writes).toEqual([]);
    mayMove = true;
    on.cluster.endPods(id);
    expect((await workspace.resume({ readyTimeoutMs: 60_000 }, patient)).state).toBe("running");
  });

  it("is CONTAINER_RESTARTED where another process answers in the same pod, which is told first", async () => {
    survives();
    const { health } = agent();
    agent().health = async (within) => ({ ...(await health(within)), bootId: "second" as never });
    const { error, event, before } = await failure();
    expect(before).toEqual(["container_restarted"]);
    expect(event).toMatchObject({ evidence: "container_restarted", previous: first, current: { bootId: "second" } });
    expect(error).toMatchObject({ reason: "GUEST_GONE", metadata: { current_boot_id: "second" } });
  });

  it("is UNKNOWN where the object is absent, another, or being deleted", async () => {
    survives();
    on.cluster.foreignDelete(id);
    expect((await failure()).event.evidence).toBe("unknown");
  });

  it("is UNKNOWN where nothing could be read, unless the boot id has moved", async () => {
    survives();
    on.cluster.plan.fail("readSandbox", "unavailable");
    const { error, event } = await failure();
    expect(event.evidence).toBe("unknown");
    expect(error).toMatchObject({ reason: "CANCELLATION_UNCONFIRMED", metadata: { evidence: "unknown" } });
  });

  it("is UNKNOWN during a transition, which decides what becomes of it", async () => {
    survives();
    mayMove = true;
    on.cluster.habits.podsEnd = false;
    const cancelling = workspace.cancelExecution(x1, patient);
    const suspending = workspace.suspend(suspendWish, patient);
    const { event } = await failure(cancelling);
    expect(event.evidence).toBe("unknown");
    on.cluster.endPods(id);
    await suspending;
  });
});

describe("L43 a command whose end its guest could not confirm", () => {
  const failsAfterStart = () => {
    agent().execute = async function* ({ executionId: started }) {
      yield { t: "started", executionId: started, bootId: first.bootId as never, attached: false };
      throw unconfirmed();
    };
  };
  const run = () => collect(workspace.execute(executionWish(), patient));

  it("is asked for again before its caller is told", async () => {
    failsAfterStart();
    survives();
    const error: unknown = await on.clock.runUntilSettled(run()).catch((caught: unknown) => caught);
    expect(error).toMatchObject({ reason: "CANCELLATION_UNCONFIRMED", metadata: { evidence: "same_guest" } });
    expect(on.guests.count("cancel")).toBeGreaterThan(5);
    expect(await heard.next(patient)).toMatchObject({ event: { t: "cancellation_unconfirmed", previous: first } });
  });

  it("that is confirmed then is said to have ended, and is never said to have failed", async () => {
    failsAfterStart();
    const error: unknown = await on.clock.runUntilSettled(run()).catch((caught: unknown) => caught);
    expect(error).toMatchObject({ reason: "EXECUTION_DETACHED", message: expect.stringContaining("has ended") });
  });

  it("blames no restart that it survived before it started", async () => {
    const { health } = agent();
    agent().health = async (within) => ({ ...(await health(within)), bootId: "second" as never });
    agent().execute = async function* ({ executionId: started }) {
      yield { t: "started", executionId: started, bootId: "second" as never, attached: false };
      throw unconfirmed();
    };
    survives();
    const error: unknown = await on.clock.runUntilSettled(run()).catch((caught: unknown) => caught);
    expect(error).toMatchObject({ reason: "CANCELLATION_UNCONFIRMED", metadata: { evidence: "same_guest" } });
  });
});
