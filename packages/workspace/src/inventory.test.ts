import { Deadline } from "@holdfast/async";
import { patient, type Stage, stage, workspaceId } from "@holdfast/testkit";
import { beforeEach, describe, expect, it } from "vitest";
import { listWorkspaces } from "./list-workspaces.ts";
import { readThrough } from "./read-through.ts";

const id = workspaceId("demo");
let on: Stage;

beforeEach(() => {
  on = stage();
});

describe("a workspace that is read through", () => {
  const seen = async () => (await readThrough(on.deps, id, patient)).state;

  it("is running with a bindable pod, starting without one, not ready when its pod ended", async () => {
    on.cluster.seed(id);
    expect(await readThrough(on.deps, id, patient)).toMatchObject({
      state: "running",
      template: "small",
      pod: { image: "holdfast/guest-agent:test" },
      identity: { podUid: on.cluster.pods(id)[0]?.uid },
    });
    Object.assign(on.cluster.pods(id)[0] ?? {}, { ready: false, problem: "image pull: not found" });
    expect(await readThrough(on.deps, id, patient)).toMatchObject({
      state: "starting",
      transition: { waitingFor: "image pull: not found" },
      pod: undefined,
    });
    expect(await readThrough(on.deps, id, patient)).not.toHaveProperty("origin");
    Object.assign(on.cluster.pods(id)[0] ?? {}, { phase: "Succeeded" });
    expect(await seen()).toBe("not_ready");
    on.cluster.stored(id).pods = [];
    expect(await seen()).toBe("starting");
    expect(on.guests.calls).toEqual([]);
    expect(on.cluster.plan.writes).toEqual([]);
  });

  it("tells what the object says, and nothing that only an open one knows", async () => {
    on.cluster.seed(id, { stamps: { holderEpoch: "5", podTemplateHash: "sha256:00" } });
    const read = () => readThrough(on.deps, id, patient);
    expect(await read()).toMatchObject({
      holderEpoch: 5,
      templateRevision: "sha256:00",
      templateCurrent: false, // No template was read for it (L32).
      root: "/workspace",
      identity: { sandboxUid: on.cluster.stored(id).uid, claimUids: { "disk-namzu-ws-demo": expect.any(String) } },
      transition: { cause: "read" },
      live: { executions: 0, sessions: 0, ports: 0 },
    });
    expect((await read()).transition).not.toHaveProperty("at");
    on.cluster.stored(id).stamps.holderEpoch = undefined;
    expect((await read()).holderEpoch).toBe(0);
    on.cluster.stored(id).stamps.holderEpoch = "latest";
    expect((await read()).holderEpoch).toBeUndefined();
  });

  it("L25 is not suspended where somebody woke it before its old pod was seen gone", async () => {
    on.cluster.habits.podsEnd = false;
    on.cluster.seed(id);
    on.cluster.foreignMode(id, "Suspended");
    const pods = on.cluster.plan.hold("readPods");
    const reading = seen();
    await pods.reached;
    on.cluster.habits.controller = false;
    on.cluster.foreignMode(id, "Running");
    on.cluster.stored(id).pods = [];
    pods.release();
    expect(await reading).toBe("suspending");
  });

  it("L25 is suspended only when no pod lives and the controller has seen it, else suspending", async () => {
    on.cluster.habits.podsEnd = false;
    on.cluster.seed(id);
    on.cluster.foreignMode(id, "Suspended");
    expect(await seen()).toBe("suspending");
    on.cluster.endPods(id);
    expect(await seen()).toBe("suspended");
    on.cluster.stored(id).generation += 1;
    expect(await seen()).toBe("suspending");
  });

  it("is deleting with a deletionTimestamp, and WORKSPACE_NOT_FOUND when absent", async () => {
    on.cluster.seed(id, { deleting: true });
    expect(await seen()).toBe("deleting");
    on.cluster.foreignDelete(id);
    await expect(seen()).rejects.toMatchObject({ reason: "WORKSPACE_NOT_FOUND" });
  });
});

describe("the list", () => {
  const list = async (wish: Partial<Parameters<typeof listWorkspaces>[1]> = {}) => {
    using within = new Deadline(on.clock, 1_000);
    return await listWorkspaces(on.deps, { limit: 100, continueToken: undefined, ...wish }, within);
  };
  const ids = async (wish: Parameters<typeof list>[0] = {}) => (await list(wish)).workspaces.map((one) => one.id);

  it("is one request: no pod is read, nothing is dialled, nothing written", async () => {
    on.cluster.seed(id);
    on.cluster.seed(workspaceId("other"), { mode: "Suspended" });
    expect(await ids()).toEqual(["demo", "other"]);
    expect(on.cluster.plan.requests).toEqual(["listSandboxes"]);
    expect(on.guests.calls).toEqual([]);
  });

  it("leaves out what has not both the name prefix and the template label", async () => {
    on.cluster.seed(id, { template: undefined });
    on.cluster.seed(workspaceId("kept"));
    Object.assign(on.cluster.seed(workspaceId("renamed")), { name: "somebody-elses" });
    expect(await ids()).toEqual(["kept"]);
  });

  it("pages by the cluster's token; a page may be short", async () => {
    for (const name of ["a", "b", "c"]) on.cluster.seed(workspaceId(name), name === "b" ? { template: undefined } : {});
    const first = await list({ limit: 2 });
    expect([first.workspaces.length, first.nextContinue]).toEqual([1, "2"]);
    const second = await list({ limit: 2, continueToken: first.nextContinue });
    expect([second.workspaces.map((one) => one.id), second.nextContinue]).toEqual([["c"], undefined]);
  });

  it("filters by mode, template, prefix and the time of the last change", async () => {
    on.cluster.seed(workspaceId("a-1"), { mode: "Suspended", stamps: { modeChangedAt: "2025-06-01T00:00:00.000Z" } });
    on.cluster.seed(workspaceId("a-2"), { template: "big" });
    on.cluster.seed(workspaceId("b-1"), { stamps: { modeChangedAt: "2025-07-01T00:00:00.000Z" } });
    expect(await ids({ mode: "Suspended" })).toEqual(["a-1"]);
    expect(await ids({ template: "big" })).toEqual(["a-2"]);
    expect(await ids({ idPrefix: "a-" })).toEqual(["a-1", "a-2"]);
    // One that never changed has no stand-in, so no time is after it.
    expect(await ids({ modeChangedBefore: Date.UTC(2025, 5, 15) })).toEqual(["a-1"]);
    expect(await ids({ modeChangedBefore: Date.UTC(2030, 0, 1) })).toEqual(["a-1", "b-1"]);
  });

  it.each(["+010000-01-01T00:00:00.000Z", "0000-01-01T00:00:00.000Z", "5", "1 May", ""])(
    "reads a mode-changed stamp that no client could show, %j, as absent",
    async (modeChangedAt) => {
      on.cluster.seed(id, { stamps: { modeChangedAt } });
      const { workspaces } = await list();
      expect(workspaces.map((one) => one.modeChangedAt)).toEqual([undefined]);
      expect(await ids({ modeChangedBefore: Date.UTC(9000, 0, 1) })).toEqual([]);
    },
  );

  it("tells the stored epoch: 0 when none, absent when it cannot be read", async () => {
    on.cluster.seed(workspaceId("a"));
    on.cluster.seed(workspaceId("b"), { stamps: { holderEpoch: "7", modeChangedAt: "yesterday" } });
    on.cluster.seed(workspaceId("c"), { stamps: { holderEpoch: "latest" } });
    const { workspaces } = await list();
    expect(workspaces.map((one) => one.holderEpoch)).toEqual([0, 7, undefined]);
    expect(workspaces.map((one) => one.modeChangedAt)).toEqual([undefined, undefined, undefined]);
  });
});
