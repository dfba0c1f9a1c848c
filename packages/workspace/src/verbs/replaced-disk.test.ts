import { openWish, patient, type Stage, settleTasks, stage, suspendWish, workspaceId } from "@holdfast/testkit";
import { beforeEach, describe, expect, it } from "vitest";
import { Workspace } from "../workspace.ts";

const id = workspaceId("demo");
const claim = "disk-namzu-ws-demo";
const resumeWish = { readyTimeoutMs: 60_000 };
const accepting = { readyTimeoutMs: 60_000, acceptReplacedDisk: true };
let on: Stage;
let workspace: Workspace;

beforeEach(async () => {
  on = stage();
  workspace = new Workspace(id, on.deps);
  await workspace.open(openWish, patient);
  await workspace.suspend(suspendWish, patient);
  on.cluster.plan.requests.length = 0;
});

const writes = () => on.cluster.plan.writes;
const record = () => on.cluster.stored(id).stamps.volumeClaimUids;

describe("L16 a disk that was replaced", () => {
  it.each([
    ["by another claim", () => on.cluster.claims.set(claim, "an-empty-one"), "an-empty-one"],
    ["or whose claim is gone: the next pod would get an empty one", () => on.cluster.claims.delete(claim), ""],
  ])("%s is found before waking, and nothing is woken", async (_how, replace, actual) => {
    const expected = on.cluster.claims.get(claim);
    replace();
    for (const handle of [workspace, new Workspace(id, on.deps)]) {
      await expect(handle.resume(resumeWish, patient)).rejects.toMatchObject({
        reason: "WORKSPACE_REPLACED",
        message: expect.stringContaining("accept_replaced_disk"),
        metadata: { field: "claim_uid", claim, expected, actual },
      });
    }
    expect(writes()).toEqual([]);
    expect(on.cluster.stored(id).mode).toBe("Suspended");
  });

  it.each(["resume", "open"] as const)(
    "is used by a %s that accepts it, and its uid is recorded at once",
    async (verb) => {
      on.cluster.claims.set(claim, "an-empty-one");
      const handle = new Workspace(id, on.deps);
      const view = await (verb === "resume"
        ? handle.resume(accepting, patient)
        : handle.open({ ...openWish, acceptReplacedDisk: true }, patient));
      expect(view.identity.claimUids).toEqual({ [claim]: "an-empty-one" });
      expect(record()).toBe(`${claim}=an-empty-one`);
      await handle.suspend(suspendWish, patient);
      expect((await handle.resume(resumeWish, patient)).state).toBe("running");
    },
  );

  it("is accepted on a workspace that runs too: one patch that moves no mode", async () => {
    on.cluster.claims.set(claim, "an-empty-one");
    on.cluster.foreignMode(id, "Running");
    const stamp = on.cluster.stored(id).stamps.modeChangedAt;
    await new Workspace(id, on.deps).open({ ...openWish, acceptReplacedDisk: true }, patient);
    expect(writes()).toEqual(["setMode"]);
    expect(on.cluster.stored(id)).toMatchObject({ mode: "Running", stamps: { modeChangedAt: stamp } });
    expect(record()).toBe(`${claim}=an-empty-one`);
  });

  it("is refused on a workspace that runs where nobody accepts it, and its guest is not dialled", async () => {
    on.cluster.claims.set(claim, "an-empty-one");
    on.cluster.foreignMode(id, "Running");
    on.guests.calls.length = 0;
    await expect(new Workspace(id, on.deps).open(openWish, patient)).rejects.toMatchObject({
      reason: "WORKSPACE_REPLACED",
    });
    expect([writes(), on.guests.calls]).toEqual([[], []]);
  });

  it("is recorded although somebody writes in between, and the call fails where it cannot be", async () => {
    on.cluster.claims.set(claim, "an-empty-one");
    const handle = new Workspace(id, on.deps);
    await handle.resume(accepting, patient);
    on.cluster.stored(id).stamps.volumeClaimUids = `${claim}=of-old`;
    on.cluster.plan.fail("setMode", "refuse");
    const other = new Workspace(id, on.deps);
    const closed = on.guests.closed.length;
    await expect(other.open({ ...openWish, acceptReplacedDisk: true }, patient)).rejects.toMatchObject({
      reason: "CLUSTER_WRITE_REFUSED",
    });
    expect(on.guests.closed.slice(closed)).toEqual([on.cluster.pods(id)[0]?.uid]); // The guest that was reached for it.
    const patch = on.cluster.plan.hold("setMode");
    const opening = new Workspace(id, on.deps).open({ ...openWish, acceptReplacedDisk: true }, patient);
    await patch.reached;
    on.cluster.stored(id).stamps.writtenBy = "somebody";
    patch.release();
    expect((await on.clock.runUntilSettled(opening)).state).toBe("running");
    expect(record()).toBe(`${claim}=an-empty-one`);
  });

  it.each([
    ["takes it over", () => on.cluster.foreignFence(id, 6), "HOLDER_EPOCH_REQUIRED"],
    ["suspends it", () => on.cluster.foreignMode(id, "Suspended"), "WORKSPACE_SUSPENDED"],
  ])("is not recorded by a call during which somebody %s: that one is told so", async (_, overtake, reason) => {
    on.cluster.claims.set(claim, "an-empty-one");
    await new Workspace(id, on.deps).resume(accepting, patient);
    on.cluster.stored(id).stamps.volumeClaimUids = `${claim}=of-old`;
    const patch = on.cluster.plan.hold("setMode");
    const opening = new Workspace(id, on.deps).open({ ...openWish, acceptReplacedDisk: true }, patient);
    await patch.reached;
    overtake();
    patch.release();
    await expect(on.clock.runUntilSettled(opening)).rejects.toMatchObject({ reason });
    expect(record()).toBe(`${claim}=of-old`);
  });

  it("is accepted without forgetting the others: a claim that could not be read keeps its record", async () => {
    const unread = "cache-namzu-ws-demo";
    on.cluster.stored(id).claimTemplates = ["disk", "cache"];
    on.cluster.stored(id).stamps.volumeClaimUids = `${unread}=kept,${claim}=of-old`;
    on.cluster.unreadableClaims.add(unread);
    await new Workspace(id, on.deps).resume(accepting, patient);
    expect(record()).toContain(`${unread}=kept`);
    expect(record()).toContain(`${claim}=${on.cluster.claims.get(claim)}`);
  });

  it("while a start waits for the old pod to go is found before waking, too, like all else that is checked", async () => {
    for (const spoil of [
      () => on.cluster.claims.delete(claim),
      () => {
        Object.assign(on.cluster.stored(id), {
          disk: { usable: false, why: "no container mounts it", claims: ["disk"] },
          generation: on.cluster.stored(id).generation + 1,
        });
      },
    ]) {
      on.cluster.foreignMode(id, "Running");
      on.cluster.habits.controller = false;
      on.cluster.foreignMode(id, "Suspended"); // Its pod carries no deletionTimestamp yet.
      const resuming = new Workspace(id, on.deps).resume(resumeWish, patient);
      await settleTasks();
      spoil();
      on.cluster.habits.controller = true;
      on.cluster.observe(id);
      await expect(resuming).rejects.toMatchObject({
        reason: expect.stringMatching("^WORKSPACE_(REPLACED|DISK_UNUSABLE)$"),
      });
      expect([writes(), on.cluster.stored(id).mode]).toEqual([[], "Suspended"]);
      on.cluster.claims.set(claim, "uid-of-disk");
      on.cluster.stored(id).stamps.volumeClaimUids = undefined;
    }
  });

  it("is found also after a start that failed and was suspended again: that suspend records the claims too", async () => {
    const fresh = workspaceId("fresh");
    on.cluster.habits.podsStart = false;
    const opening = new Workspace(fresh, on.deps).open({ ...openWish, readyTimeoutMs: 1_000 }, patient);
    await on.clock.runUntilSettled(opening).catch(() => undefined);
    expect(on.cluster.stored(fresh)).toMatchObject({
      mode: "Suspended",
      stamps: { volumeClaimUids: `disk-namzu-ws-fresh=${on.cluster.claims.get("disk-namzu-ws-fresh")}` },
    });
    on.cluster.claims.set("disk-namzu-ws-fresh", "an-empty-one");
    await expect(new Workspace(fresh, on.deps).open(openWish, patient)).rejects.toMatchObject({
      reason: "WORKSPACE_REPLACED",
    });
  });

  it("cannot be noticed where claims may not be read, and everything else works", async () => {
    on.cluster.unreadableClaims.add(claim);
    on.cluster.claims.set(claim, "an-empty-one");
    const view = await new Workspace(id, on.deps).resume(resumeWish, patient);
    expect(view.identity.claimUids).toEqual({});
  });

  it("keeps its record through a suspend by one who may not read the claims", async () => {
    const before = record();
    on.cluster.unreadableClaims.add(claim);
    const blind = new Workspace(id, on.deps);
    await blind.resume(resumeWish, patient);
    await blind.suspend(suspendWish, patient);
    expect(record()).toBe(before);
  });

  it("is told from a disk that nobody has recorded: one that never was cannot have been replaced", async () => {
    on.cluster.stored(id).stamps.volumeClaimUids = undefined;
    on.cluster.claims.delete(claim);
    expect((await new Workspace(id, on.deps).resume(resumeWish, patient)).state).toBe("running");
  });
});
