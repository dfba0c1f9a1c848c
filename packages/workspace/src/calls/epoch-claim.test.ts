import { type HolderEpoch, holderEpochFrom } from "@holdfast/contract";
import { collect, executionWish, openWish, patient, type Stage, stage, workspaceId } from "@holdfast/testkit";
import { beforeEach, describe, expect, it } from "vitest";
import { Workspace } from "../workspace.ts";

const id = workspaceId("demo");
let on: Stage;
let workspace: Workspace;

beforeEach(() => {
  on = stage();
  workspace = new Workspace(id, on.deps);
});

const e = holderEpochFrom;
const run = (epoch?: HolderEpoch, signal = patient) => collect(workspace.execute(executionWish(), signal, epoch));
const reads = () => on.cluster.plan.count("readSandbox");
const agent = () => on.guests.agent(on.cluster.pods(id)[0]?.uid as never);
const executed = () => on.guests.calls.filter(({ verb }) => verb === "execute");

async function openAt(epoch: number): Promise<void> {
  await workspace.open({ ...openWish, fencing: { t: "epoch", epoch: e(epoch) } }, patient);
  on.cluster.plan.requests.length = 0;
}

/** Another replica takes the workspace over, and its guest with it. */
function takenOverAt(epoch: number): void {
  on.cluster.foreignFence(id, epoch);
  agent().holderEpoch = e(epoch);
}

describe("L20 a call of the data plane", () => {
  it("carries its caller's epoch to the guest, and no other's", async () => {
    await openAt(5);
    await run(e(5));
    await workspace.filesUnder(e(5)).makeDirectory({ path: "d", makeParents: false, mode: undefined }, patient);
    expect(on.guests.calls.filter(({ verb }) => verb === "execute" || verb === "files")).toEqual([
      expect.objectContaining({ verb: "execute", epoch: 5 }),
      expect.objectContaining({ verb: "files", epoch: 5 }),
    ]);
    expect(reads()).toBe(0);
  });

  it("that only reads carries none and needs none", async () => {
    await openAt(5);
    await collect(workspace.filesUnder(e(3)).list("", patient));
    await collect(workspace.files.list("", patient));
    expect(on.guests.calls.filter(({ verb, epoch }) => verb === "files" && epoch !== undefined)).toEqual([]);
  });
});

describe("L21 a call of the data plane", () => {
  it("without an epoch on a fenced workspace is HOLDER_EPOCH_REQUIRED, after one look; nothing is sent", async () => {
    await openAt(5);
    await expect(run()).rejects.toMatchObject({
      reason: "HOLDER_EPOCH_REQUIRED",
      metadata: { operation: "Execute", stored: "5" },
    });
    expect([executed(), reads()]).toEqual([[], 1]);
  });

  it.each([undefined, e(4)])(
    "with %s is not refused by a fence that nobody has any more: another workspace has the name",
    async (epoch) => {
      await openAt(5);
      on.cluster.foreignDelete(id);
      on.cluster.seed(id);
      await expect(run(epoch)).rejects.toMatchObject({ reason: "WORKSPACE_REPLACED" });
    },
  );

  it.each([
    ["write", () => workspace.files.write({ path: "f" } as never, nothing(), patient)],
    ["make a directory", () => workspace.files.makeDirectory({ path: "d" } as never, patient)],
    ["remove", () => workspace.files.remove({ path: "f", recursive: false }, patient)],
    ["move", () => workspace.files.move({ from: "f", to: "g", replace: false }, patient)],
  ])("of files likewise: %s", async (_, call) => {
    await openAt(5);
    await expect(call()).rejects.toMatchObject({ reason: "HOLDER_EPOCH_REQUIRED" });
    expect(on.guests.count("files")).toBe(0);
  });

  it("below the known epoch is HOLDER_EPOCH_SUPERSEDED with both numbers; nothing is sent", async () => {
    await openAt(5);
    await expect(run(e(4))).rejects.toMatchObject({
      reason: "HOLDER_EPOCH_SUPERSEDED",
      metadata: { mine: "4", stored: "5" },
    });
    expect(executed()).toEqual([]);
  });

  it("above the stored epoch is HOLDER_EPOCH_NOT_TAKEN, after one read; nothing is sent", async () => {
    await openAt(5);
    await expect(run(e(6))).rejects.toMatchObject({
      reason: "HOLDER_EPOCH_NOT_TAKEN",
      metadata: { mine: "6", stored: "5" },
    });
    expect([executed(), reads(), agent().holderEpoch]).toEqual([[], 1, 5]);
  });
});

describe("L22 after a take-over elsewhere", () => {
  it("a call with the new epoch finds it on the object and goes through; the guest is told where it has not heard", async () => {
    await openAt(5);
    on.cluster.foreignFence(id, 7);
    expect(await run(e(7))).toHaveLength(3);
    expect([agent().holderEpoch, reads(), workspace.view().holderEpoch]).toEqual([7, 1, 7]);
    await run(e(7));
    expect(reads()).toBe(1);
  });

  it("a call with the old one is refused by the guest, and told so only after the object was read", async () => {
    await openAt(5);
    takenOverAt(7);
    await expect(run(e(5))).rejects.toMatchObject({
      reason: "HOLDER_EPOCH_SUPERSEDED",
      metadata: { mine: "5", stored: "7" },
    });
    expect(reads()).toBe(1);
    await expect(run()).rejects.toMatchObject({ reason: "HOLDER_EPOCH_REQUIRED" });
  });

  it("a call without one on a handle that knew of no fence is refused likewise", async () => {
    await workspace.open(openWish, patient);
    takenOverAt(2);
    await expect(run()).rejects.toMatchObject({ reason: "HOLDER_EPOCH_REQUIRED", metadata: { stored: "2" } });
  });

  it("a call with a number between is SUPERSEDED, and the guest is told the stored one", async () => {
    await openAt(5);
    on.cluster.foreignFence(id, 9);
    await expect(run(e(7))).rejects.toMatchObject({ metadata: { mine: "7", stored: "9" } });
    expect(agent().holderEpoch).toBe(9);
  });

  it.each([
    [5, e(5)],
    [0, undefined],
  ])(
    "a guest's word that a higher one than %s exists is not believed where the object does not have it",
    async (stored, epoch) => {
      if (stored > 0) await openAt(stored);
      else await workspace.open(openWish, patient);
      agent().holderEpoch = e(9);
      await expect(run(epoch)).rejects.toMatchObject({
        reason: "WORKSPACE_NOT_READY",
        metadata: { why: "guest_epoch_unconfirmed", stored: String(stored), guest: "9" },
      });
      expect(workspace.state.t).toBe("active");
    },
  );

  it("a guest that denies the number that it has just confirmed is asked twice and no more", async () => {
    await openAt(5);
    const { holderEpoch } = agent();
    Object.defineProperty(agent(), "holderEpoch", { get: () => e(holderEpoch - 1), set: () => undefined });
    await expect(run(e(5))).rejects.toMatchObject({ metadata: { why: "guest_epoch_unconfirmed" } });
    expect(executed()).toHaveLength(2);
  });

  it.each([
    ["suspended", () => on.cluster.foreignMode(id, "Suspended"), "WORKSPACE_SUSPENDED", { t: "suspending" }],
    [
      "being deleted",
      () => Object.assign(on.cluster.stored(id), { deleting: true }),
      "WORKSPACE_DELETING",
      { t: "deleting" },
    ],
    ["absent", () => on.cluster.foreignDelete(id), "WORKSPACE_REPLACED", { t: "gone", why: "absent" }],
    [
      "another",
      () => [on.cluster.foreignDelete(id), on.cluster.seed(id)],
      "WORKSPACE_REPLACED",
      { t: "gone", why: "replaced" },
    ],
  ])("an object that is %s ends the call with that", async (_, become, reason, state) => {
    await openAt(5);
    become();
    await expect(run(e(6))).rejects.toMatchObject({ reason });
    expect(workspace.state).toMatchObject(state);
    expect(executed()).toEqual([]);
  });

  it("an object that cannot be read refuses the call, and changes nothing", async () => {
    await openAt(5);
    on.cluster.plan.fail("readSandbox", "unavailable");
    await expect(run(e(6))).rejects.toMatchObject({ reason: "CLUSTER_UNAVAILABLE" });
    expect([workspace.state.t, executed()]).toEqual(["active", []]);
    expect(await run(e(5))).toHaveLength(3);
  });

  it("a guest that is lost while it is fenced got nothing of the call: it goes to the next pod", async () => {
    await openAt(5);
    on.cluster.foreignFence(id, 6);
    const first = on.cluster.pods(id)[0]?.uid;
    agent().unreached = "no-connection";
    on.cluster.replacePod(id);
    expect(await run(e(6))).toHaveLength(3);
    expect(executed().map(({ pod }) => pod)).not.toContain(first);
    expect(agent().holderEpoch).toBe(6);
  });
});

async function* nothing(): AsyncGenerator<Uint8Array> {}
