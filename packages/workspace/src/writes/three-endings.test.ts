import { holderEpochFrom } from "@holdfast/contract";
import {
  type Fault,
  openWish,
  patient,
  type Stage,
  settleTasks,
  stage,
  suspendWish,
  workspaceId,
} from "@holdfast/testkit";
import { beforeEach, describe, expect, it } from "vitest";
import type { StateName } from "../state/workspace-state.ts";
import { Workspace } from "../workspace.ts";

const id = workspaceId("demo");
const keep = { ...suspendWish, deleteDisk: false };
const remove = { ...suspendWish, deleteDisk: true };
let on: Stage;
let workspace: Workspace;

beforeEach(() => {
  on = stage();
  workspace = new Workspace(id, on.deps);
});

interface WriteCase {
  readonly verb: string;
  readonly before: () => Promise<void>;
  readonly send: () => Promise<unknown>;
  readonly holds: () => boolean;
  /** What it is called when nothing could be proved. */
  readonly unproved: string;
  /** Where the handle stands then. */
  readonly stands: StateName;
}

/** Each write, how to come to it, how to send it, and what must hold once it has ended well. */
const writes: readonly WriteCase[] = [
  {
    verb: "createSandbox",
    stands: "gone",
    unproved: "CLUSTER_UNAVAILABLE",
    before: async () => undefined,
    send: () => workspace.open({ ...openWish, create: "must_create" }, patient),
    holds: () => workspace.state.t === "active" && workspace.view().origin === "created",
  },
  {
    verb: "setMode (Running)",
    stands: "gone",
    unproved: "CLUSTER_UNAVAILABLE",
    before: async () => {
      on.cluster.seed(id, { mode: "Suspended" });
    },
    send: () => workspace.open(openWish, patient),
    holds: () => workspace.state.t === "active" && workspace.view().origin === "resumed",
  },
  {
    verb: "setMode (Suspended)",
    stands: "suspending",
    unproved: "SUSPEND_UNCONFIRMED",
    before: async () => {
      await workspace.open(openWish, patient);
    },
    send: () => workspace.suspend(suspendWish, patient),
    holds: () => workspace.state.t === "suspended" && on.cluster.pods(id).length === 0,
  },
  {
    verb: "setMode (an epoch alone)",
    stands: "active",
    unproved: "CLUSTER_UNAVAILABLE",
    before: async () => {
      await workspace.open({ ...openWish, fencing: { t: "epoch", epoch: holderEpochFrom(1) } }, patient);
    },
    send: () => workspace.open({ ...openWish, fencing: { t: "epoch", epoch: holderEpochFrom(2) } }, patient),
    holds: () => workspace.state.t === "active" && on.cluster.stored(id).stamps.holderEpoch === "2",
  },
  {
    verb: "deleteSandbox",
    stands: "deleting",
    unproved: "DELETE_UNCONFIRMED",
    before: async () => {
      await workspace.open(openWish, patient);
    },
    send: () => workspace.destroy(remove, patient),
    holds: () => workspace.state.t === "gone" && !on.cluster.stands(id),
  },
];

const verbOf = (name: string) => name.split(" ")[0] as "createSandbox" | "setMode" | "deleteSandbox";

describe.each(writes)("L1 $verb without an answer", ({ verb, unproved, stands, before, send, holds }) => {
  const name = verbOf(verb);

  it.each([
    ["never arrived: it is sent again", "never-arrived", 2],
    ["whose reply was lost: it is proved by a read, and not sent again", "reply-lost", 1],
  ] as const)("%s", async (_, fault, sent) => {
    await before();
    const earlier = on.cluster.plan.count(name);
    on.cluster.plan.fail(name, fault);
    await on.clock.runUntilSettled(send());
    expect(holds()).toBe(true);
    expect(on.cluster.plan.count(name) - earlier).toBe(sent);
    expect(workspace.hasUnresolvedWrite).toBe(false);
  });

  it("is one whose answer takes longer than 10 s; one that comes before counts", async () => {
    await before();
    const earlier = on.cluster.plan.count(name);
    const slow = on.cluster.plan.hold(name);
    const sending = send();
    await slow.reached;
    await on.clock.advance(9_999);
    expect(on.cluster.plan.count(name) - earlier).toBe(1);
    slow.release();
    await on.clock.runUntilSettled(sending);
    expect([holds(), on.cluster.plan.count(name) - earlier]).toEqual([true, 1]);
  });

  it("that arrives late, after what defeated it, changes nothing", async () => {
    await before();
    on.cluster.plan.fail(name, "late");
    await on.clock.runUntilSettled(send());
    expect(holds()).toBe(true);
    const stands = on.cluster.stands(id) && structuredClone(on.cluster.stored(id).stamps);
    expect(on.cluster.deliverLate()).not.toContain("applied");
    await settleTasks();
    expect(on.cluster.stands(id) && on.cluster.stored(id).stamps).toEqual(stands);
    expect(holds()).toBe(true);
  });

  it("that arrives late, between two looks, is proved as ours", async () => {
    await before();
    on.cluster.plan.fail(name, "late");
    const look = on.cluster.plan.hold(name);
    const sending = send();
    await look.reached;
    const reread = on.cluster.plan.hold("readSandbox");
    look.release();
    await reread.reached;
    on.cluster.deliverLate();
    reread.release();
    await on.clock.runUntilSettled(sending);
    expect(holds()).toBe(true);
    expect(workspace.hasUnresolvedWrite).toBe(false);
  });

  it("is not read as refused because its repeat was", async () => {
    await before();
    on.cluster.plan.fail(name, "late", "refuse");
    const ending = on.clock.runUntilSettled(send());
    await expect(ending).rejects.toMatchObject({ reason: unproved });
    expect(workspace.state.t).toBe(stands);
  });
});

describe("L1 unresolved to the end", () => {
  const lost = (fault: Fault) => Array<Fault>(200).fill(fault);

  it("a suspend is SUSPEND_UNCONFIRMED, suspending, and says that it was sent", async () => {
    await workspace.open(openWish, patient);
    on.cluster.plan.fail("setMode", ...lost("never-arrived"));
    await expect(on.clock.runUntilSettled(workspace.suspend(suspendWish, patient))).rejects.toMatchObject({
      reason: "SUSPEND_UNCONFIRMED",
      metadata: { sent: "true" },
    });
    expect(workspace.state.t).toBe("suspending");
    expect(workspace.hasUnresolvedWrite).toBe(true);
  });

  it("a suspend is suspending from the first missing answer on, before anything is read", async () => {
    await workspace.open(openWish, patient);
    on.cluster.plan.fail("setMode", "reply-lost");
    const patch = on.cluster.plan.hold("setMode");
    const suspending = workspace.suspend(suspendWish, patient);
    await patch.reached;
    expect(workspace.state.t).toBe("closing");
    const reread = on.cluster.plan.hold("readSandbox");
    patch.release();
    await reread.reached;
    expect(workspace.state.t).toBe("suspending");
    reread.release();
    expect((await suspending).view.state).toBe("suspended");
  });

  it("an epoch is not claimed; the guest is not told, the handle is kept, and the next write defeats it", async () => {
    const at = (epoch: number) => ({ t: "epoch", epoch: holderEpochFrom(epoch) }) as const;
    await workspace.open({ ...openWish, fencing: at(1) }, patient);
    on.cluster.plan.fail("setMode", ...lost("late"));
    const raising = workspace.open({ ...openWish, fencing: at(2), readyTimeoutMs: 5_000 }, patient);
    await expect(on.clock.runUntilSettled(raising)).rejects.toMatchObject({ reason: "CLUSTER_UNAVAILABLE" });
    expect([workspace.state.t, workspace.hasUnresolvedWrite, workspace.hasUnresolvedStop]).toEqual([
      "active",
      true,
      false,
    ]);
    expect(on.guests.calls.filter(({ verb }) => verb === "fence")).toHaveLength(1);
    on.cluster.plan.forget();
    await workspace.suspend({ ...suspendWish, fencing: at(1) }, patient);
    expect(new Set(on.cluster.deliverLate())).toEqual(new Set(["refused"]));
    expect([on.cluster.stored(id).stamps.holderEpoch, workspace.hasUnresolvedWrite]).toEqual(["1", false]);
  });

  it("a wake is not claimed, and is not cleaned up after: it is not known to be ours", async () => {
    on.cluster.seed(id, { mode: "Suspended" });
    on.cluster.plan.fail("setMode", ...lost("never-arrived"));
    const opening = workspace.open({ ...openWish, readyTimeoutMs: 5_000 }, patient);
    await expect(on.clock.runUntilSettled(opening)).rejects.toMatchObject({
      reason: "CLUSTER_UNAVAILABLE",
      metadata: { mode: "Running" },
    });
    expect(on.cluster.sent.every((wish) => "mode" in wish && wish.mode === "Running")).toBe(true);
  });

  it("a wake that may still land is defeated by the next suspend, though the workspace looks suspended", async () => {
    await workspace.open(openWish, patient);
    await workspace.suspend(suspendWish, patient);
    on.cluster.plan.fail("setMode", ...Array<Fault>(200).fill("late"));
    const resuming = workspace.resume({ readyTimeoutMs: 5_000 }, patient);
    await expect(on.clock.runUntilSettled(resuming)).rejects.toMatchObject({ reason: "CLUSTER_UNAVAILABLE" });
    expect(workspace.hasUnresolvedWrite).toBe(true);
    on.cluster.plan.forget();
    expect((await workspace.suspend(suspendWish, patient)).view.state).toBe("suspended");
    expect(workspace.hasUnresolvedWrite).toBe(false);
    expect(new Set(on.cluster.deliverLate())).toEqual(new Set(["refused"]));
    expect(on.cluster.stored(id).mode).toBe("Suspended");
  });

  it("a wake that landed late is found by the read that shows it", async () => {
    await workspace.open(openWish, patient);
    await workspace.suspend(suspendWish, patient);
    on.cluster.plan.fail("setMode", ...Array<Fault>(200).fill("late"));
    await on.clock.runUntilSettled(workspace.resume({ readyTimeoutMs: 5_000 }, patient)).catch(() => undefined);
    on.cluster.plan.forget();
    expect(on.cluster.deliverLate()[0]).toBe("applied");
    expect((await workspace.resume({ readyTimeoutMs: 60_000 }, patient)).state).toBe("running");
    expect(workspace.hasUnresolvedWrite).toBe(false);
  });

  it("a failed resume whose clean-up got no answer is suspending: no call is sent to what may be suspended late", async () => {
    await workspace.open(openWish, patient);
    await workspace.suspend(suspendWish, patient);
    on.cluster.habits.podsStart = false;
    const patch = on.cluster.plan.hold("setMode");
    const resuming = workspace.resume({ readyTimeoutMs: 5_000 }, patient);
    await patch.reached;
    on.cluster.plan.fail("setMode", "late");
    patch.release();
    await expect(on.clock.runUntilSettled(resuming)).rejects.toMatchObject({
      reason: "START_TIMEOUT",
      metadata: { on_start_failure: "unknown" },
    });
    expect(workspace.state.t).toBe("suspending");
  });

  it("a delete is never followed by a suspend in its place, not even by a later Suspend", async () => {
    await workspace.open(openWish, patient);
    on.cluster.plan.fail("deleteSandbox", ...lost("never-arrived"));
    await on.clock.runUntilSettled(workspace.destroy(remove, patient)).catch(() => undefined);
    await expect(workspace.suspend(suspendWish, patient)).rejects.toMatchObject({ reason: "WORKSPACE_DELETING" });
    await expect(workspace.destroy(keep, patient)).rejects.toMatchObject({ reason: "WORKSPACE_DELETING" });
    expect(on.cluster.plan.count("setMode")).toBe(0);
    expect(workspace.state.t).toBe("deleting");
  });

  it("a delete is never followed by a suspend in its place", async () => {
    await workspace.open(openWish, patient);
    on.cluster.plan.fail("deleteSandbox", ...lost("never-arrived"));
    await expect(on.clock.runUntilSettled(workspace.destroy(remove, patient))).rejects.toMatchObject({
      reason: "DELETE_UNCONFIRMED",
    });
    expect(on.cluster.plan.count("setMode")).toBe(0);
    expect(workspace.state.t).toBe("deleting");
  });

  it("is settled by a read that shows that what it tested has moved", async () => {
    await workspace.open(openWish, patient);
    on.cluster.plan.fail("setMode", ...lost("never-arrived"));
    await on.clock.runUntilSettled(workspace.suspend(suspendWish, patient)).catch(() => undefined);
    on.cluster.plan.forget();
    on.cluster.foreignMode(id, "Suspended");
    on.cluster.foreignMode(id, "Running");
    const writesBefore = on.cluster.plan.writes.length;
    expect((await workspace.resume({ readyTimeoutMs: 60_000 }, patient)).origin).toBe("adopted_running");
    expect(on.cluster.plan.writes).toHaveLength(writesBefore);
    expect(workspace.hasUnresolvedWrite).toBe(false);
  });
});
