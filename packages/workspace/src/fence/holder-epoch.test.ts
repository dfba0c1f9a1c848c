import {
  collect,
  executionWish,
  openWish,
  patient,
  type Stage,
  stage,
  suspendWish,
  workspaceId,
} from "@holdfast/testkit";
import { beforeEach, describe, expect, it } from "vitest";
import { Workspace } from "../workspace.ts";
import { holderEpochOf } from "./holder-epoch.ts";

const id = workspaceId("demo");
let on: Stage;
let workspace: Workspace;

beforeEach(() => {
  on = stage();
  workspace = new Workspace(id, on.deps);
});

describe("L21 the stored epoch", () => {
  it.each([
    [undefined, 0],
    ["0", 0],
    ["7", 7],
    ["9007199254740991", Number.MAX_SAFE_INTEGER],
    ["9007199254740992", "unreadable"],
    ["", "unreadable"],
    ["07", "unreadable"],
    ["-1", "unreadable"],
    ["1.5", "unreadable"],
    ["latest", "unreadable"],
    [" 7", "unreadable"],
  ])("reads %j as %j", (text, value) => {
    expect(holderEpochOf(text)).toBe(value);
  });
});

describe("L21 a workspace that another tool fenced, and a call without an epoch", () => {
  const changing: [string, () => Promise<unknown>][] = [
    ["open", () => workspace.open(openWish, patient)],
    ["resume", () => workspace.resume({ readyTimeoutMs: 1_000 }, patient)],
    ["suspend", () => workspace.suspend(suspendWish, patient)],
    ["destroy", () => workspace.destroy({ ...suspendWish, deleteDisk: false }, patient)],
    ["destroy with its disk", () => workspace.destroy({ ...suspendWish, deleteDisk: true }, patient)],
  ];

  const verbs: typeof changing = [...changing, ["adopt", () => workspace.adopt(patient)]];

  it.each(changing)("is left alone by %s: nothing is sent, no guest is dialled", async (_, call) => {
    on.cluster.seed(id, { stamps: { holderEpoch: "7" } });
    await expect(call()).rejects.toMatchObject({ reason: "HOLDER_EPOCH_REQUIRED", metadata: { stored: "7" } });
    expect(on.cluster.plan.writes).toEqual([]);
    expect(on.guests.calls).toEqual([]);
  });

  it.each(verbs)("is left alone by %s when its epoch cannot be read, and never overwritten", async (_, call) => {
    on.cluster.seed(id, { stamps: { holderEpoch: "latest" } });
    await expect(call()).rejects.toMatchObject({ reason: "HOLDER_EPOCH_UNREADABLE", metadata: { stored: "latest" } });
    expect(on.cluster.plan.writes).toEqual([]);
  });

  it("L23 keeps an open handle as it was when its suspend is refused", async () => {
    await workspace.open(openWish, patient);
    on.cluster.stored(id).stamps.holderEpoch = "3";
    await expect(workspace.suspend(suspendWish, patient)).rejects.toMatchObject({ reason: "HOLDER_EPOCH_REQUIRED" });
    expect(workspace.state.t).toBe("active");
    expect(await collect(workspace.execute(executionWish(), patient))).toHaveLength(3);
  });

  it("is used as any other when the stored epoch is 0", async () => {
    on.cluster.seed(id, { stamps: { holderEpoch: "0" } });
    expect((await workspace.open(openWish, patient)).origin).toBe("adopted_running");
  });
});
