import {
  collect,
  executionWish,
  openWish,
  patient,
  type Stage,
  stage,
  suspendWish,
  usableDisk,
  workspaceId,
} from "@holdfast/testkit";
import { beforeEach, describe, expect, it } from "vitest";
import type { ModeWish } from "../ports/cluster.ts";
import { Workspace } from "../workspace.ts";

const id = workspaceId("demo");
const refresh = { readyTimeoutMs: 60_000, refreshPodTemplate: true };
const openRefresh = { ...openWish, refreshPodTemplate: true };
let on: Stage;
let workspace: Workspace;

beforeEach(() => {
  on = stage();
  workspace = new Workspace(id, on.deps);
});

const writes = () => on.cluster.plan.writes;
const sentModes = () => on.cluster.sent.filter((wish): wish is ModeWish => "mode" in wish);
const sleeping = (seed: Parameters<typeof on.cluster.seed>[1] = {}) =>
  on.cluster.seed(id, { mode: "Suspended", stamps: { podTemplateHash: "sha256:old" }, ...seed });

/** A workspace that was opened here and suspended, whose template was edited since. */
async function suspendedThenEdited(): Promise<void> {
  await workspace.open(openWish, patient);
  await workspace.suspend(suspendWish, patient);
  on.cluster.addTemplate("small", usableDisk, { revision: "sha256:new" });
  on.cluster.plan.requests.length = 0;
  on.cluster.sent.length = 0;
}

describe("L31 a resume after the template was edited", () => {
  it("leaves the pod template as it is, unless a refresh is asked for", async () => {
    await suspendedThenEdited();
    const view = await workspace.resume({ readyTimeoutMs: 60_000 }, patient);
    expect(sentModes().map(({ refresh: with_ }) => with_)).toEqual([undefined]);
    expect(on.cluster.stored(id).stamps.podTemplateHash).toBe("sha256:00");
    expect(view.templateRevision).toBe("sha256:00");
  });

  it("writes it whole with its hash in the one patch that wakes, tested for the mode", async () => {
    await suspendedThenEdited();
    const view = await workspace.resume(refresh, patient);
    expect(sentModes()).toMatchObject([{ mode: "Running", refresh: { revision: "sha256:new" } }]);
    expect(sentModes()[0]?.reading.mode).toBe("Suspended");
    expect(view).toMatchObject({ origin: "resumed", templateRevision: "sha256:new", templateCurrent: true });
    expect(await collect(workspace.execute(executionWish(), patient))).toHaveLength(3);
  });

  it("is only for one that sleeps: on a workspace that runs nothing is patched", async () => {
    await workspace.open(openWish, patient);
    on.cluster.addTemplate("small", usableDisk, { revision: "sha256:new" });
    on.cluster.plan.requests.length = 0;
    await workspace.resume(refresh, patient);
    expect(writes()).toEqual([]);
    expect(on.cluster.stored(id).stamps.podTemplateHash).toBe("sha256:00");
  });

  it("loses the race to another's resume as an outcome: one attempt, its pod is bound, and it is not current", async () => {
    await suspendedThenEdited();
    const patch = on.cluster.plan.hold("setMode");
    const resuming = workspace.resume(refresh, patient);
    await patch.reached;
    on.cluster.foreignMode(id, "Running");
    patch.release();
    const view = await on.clock.runUntilSettled(resuming);
    expect(view).toMatchObject({ origin: "adopted_running", templateRevision: "sha256:00", templateCurrent: false });
    expect(writes()).toEqual(["setMode"]);
    expect(view.identity.podUid).toBe(on.cluster.pods(id)[0]?.uid);
    expect(await collect(workspace.execute(executionWish(), patient))).toHaveLength(3);
  });

  it("checks what stands, when it lost the race, as an adoption does", async () => {
    on = stage({ runtimeClassName: "kata" });
    workspace = new Workspace(id, on.deps);
    on.cluster.addTemplate("small", usableDisk, { revision: "sha256:new", runtimeClassName: "kata" });
    sleeping();
    const patch = on.cluster.plan.hold("setMode");
    const opening = workspace.open(openRefresh, patient);
    await patch.reached;
    on.cluster.foreignMode(id, "Running");
    patch.release();
    await expect(on.clock.runUntilSettled(opening)).rejects.toMatchObject({
      reason: "WORKSPACE_MISMATCH",
      metadata: { field: "runtimeClassName" },
    });
  });

  it("is WORKSPACE_NOT_FOUND when the object vanishes before the patch is decided again, and binds no pod", async () => {
    await suspendedThenEdited();
    const patch = on.cluster.plan.hold("setMode");
    const resuming = workspace.resume(refresh, patient);
    await patch.reached;
    on.cluster.foreignDelete(id);
    patch.release();
    await expect(on.clock.runUntilSettled(resuming)).rejects.toMatchObject({ reason: "WORKSPACE_NOT_FOUND" });
    expect(workspace.state.t).toBe("gone");
  });

  it("leaves an annotation alone that was written in the window, and decides again", async () => {
    await suspendedThenEdited();
    const patch = on.cluster.plan.hold("setMode");
    const resuming = workspace.resume(refresh, patient);
    await patch.reached;
    on.cluster.stored(id).stamps.volumeClaimUids = "other=1";
    on.cluster.stored(id).stamps.writtenBy = "somebody";
    patch.release();
    expect((await on.clock.runUntilSettled(resuming)).templateRevision).toBe("sha256:new");
    expect(on.cluster.stored(id).stamps.volumeClaimUids).toBe("other=1");
  });
});

describe("L31 an open with a refresh", () => {
  it("on a workspace that runs sends no patch; its revision is the stored one, and not current", async () => {
    on.cluster.seed(id, { stamps: { podTemplateHash: "sha256:old" } });
    const view = await workspace.open(openRefresh, patient);
    expect(view).toMatchObject({ templateRevision: "sha256:old", templateCurrent: false, origin: "adopted_running" });
    expect(writes()).toEqual([]);
  });

  it("wakes with the template that made the workspace, also where the call names none", async () => {
    on.cluster.addTemplate("large", usableDisk, { revision: "sha256:large" });
    sleeping({ template: "large" });
    const view = await workspace.open(openRefresh, patient);
    expect(view).toMatchObject({ origin: "resumed", templateRevision: "sha256:large", templateCurrent: true });
  });

  it("writes the configured runtime class over a pod template that has another, and may: what it writes counts", async () => {
    on = stage({ runtimeClassName: "kata" });
    workspace = new Workspace(id, on.deps);
    on.cluster.addTemplate("small", usableDisk, { revision: "sha256:kata", runtimeClassName: "kata" });
    sleeping({ runtimeClassName: "runc" });
    await workspace.open(openRefresh, patient);
    expect(on.cluster.stored(id).runtimeClassName).toBe("kata");
  });

  it("mends a standing pod template that does not use its disk", async () => {
    const seeded = sleeping();
    seeded.disk = { usable: false, why: "no container has it in volumeMounts", claims: ["disk"] };
    expect((await workspace.open(openRefresh, patient)).origin).toBe("resumed");
  });

  it.each([
    ["another template made it", { template: "other" }, {}, "WORKSPACE_MISMATCH", { field: "template" }],
    [
      "no template is known to have made it",
      { template: undefined },
      { template: undefined },
      "WORKSPACE_MISMATCH",
      {},
    ],
  ])("is refused, and wakes nothing, where %s", async (_why, seed, wish, reason, metadata) => {
    sleeping(seed);
    const opening = workspace.open({ ...openRefresh, template: "small", ...wish }, patient);
    await expect(opening).rejects.toMatchObject({ reason, metadata });
    expect([writes(), on.guests.calls]).toEqual([[], []]);
  });

  it("is refused before anything is sent where the workspace as it would be written has no usable disk", async () => {
    on.cluster.addTemplate("small", { usable: false, why: "no container mounts it", claims: ["disk"] });
    sleeping();
    await expect(workspace.open(openRefresh, patient)).rejects.toMatchObject({
      reason: "WORKSPACE_DISK_UNUSABLE",
      metadata: { source: "SandboxTemplate", claims: "disk" },
    });
    expect(writes()).toEqual([]);
  });

  it.each([
    ["has a disk more", ["disk", "scratch"], "scratch", { extra: "scratch", dropped: "" }],
    ["dropped one", [], "disk", { extra: "", dropped: "disk" }],
    ["has another in its place", ["other"], "other,disk", { extra: "other", dropped: "disk" }],
  ])(
    "is refused where the template %s: its name, extra ones first; no patch",
    async (_why, claims, named, metadata) => {
      on.cluster.addTemplate("small", usableDisk, { claims });
      sleeping();
      const error = await workspace.open(openRefresh, patient).catch((caught: unknown) => caught);
      expect(error).toMatchObject({ reason: "WORKSPACE_DISK_UNUSABLE", metadata: { claims: named, ...metadata } });
      // It says of each disk what is wrong with it, and nothing of what is not.
      const { message } = error as Error;
      const extra = `claims ${metadata.extra}, which the workspace does not have`;
      const dropped = `does not claim ${metadata.dropped}, which the workspace has`;
      expect([message.includes(extra), message.includes("does not have")]).toEqual(
        Array(2).fill(metadata.extra !== ""),
      );
      expect([message.includes(dropped), message.includes("does not claim")]).toEqual(
        Array(2).fill(metadata.dropped !== ""),
      );
      expect(writes()).toEqual([]);
    },
  );

  it("is not refused for a workspace that was made with both disks", async () => {
    const disk = { usable: true, root: "/workspace", entries: ["disk", "scratch"] } as const;
    on.cluster.addTemplate("small", disk, { claims: ["disk", "scratch"], revision: "sha256:two" });
    sleeping({ disk });
    expect((await workspace.open(openRefresh, patient)).templateCurrent).toBe(true);
  });
});

describe("L32 the revision of the template", () => {
  it("is current right after a create", async () => {
    expect(await workspace.open(openWish, patient)).toMatchObject({
      templateRevision: "sha256:00",
      templateCurrent: true,
    });
  });

  it("is compared at an Open that adopts", async () => {
    on.cluster.seed(id, { stamps: { podTemplateHash: "sha256:00" } });
    expect((await workspace.open(openWish, patient)).templateCurrent).toBe(true);
    on.cluster.stored(id).stamps.podTemplateHash = "sha256:other";
    expect((await new Workspace(id, on.deps).open(openWish, patient)).templateCurrent).toBe(false);
  });

  it("is unknown, and not current, on an object without a hash; nothing is stamped for it", async () => {
    on.cluster.seed(id);
    expect(await workspace.open(openWish, patient)).toMatchObject({
      templateRevision: undefined,
      templateCurrent: false,
    });
    expect(writes()).toEqual([]);
  });

  it("is not current where the template cannot be read, which fails no Open", async () => {
    on.cluster.seed(id, { stamps: { podTemplateHash: "sha256:00" } });
    on.cluster.templates.clear();
    expect(await workspace.open(openWish, patient)).toMatchObject({ state: "running", templateCurrent: false });
  });
});
