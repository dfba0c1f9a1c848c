import { bootIdOf, podUidOf } from "@holdfast/contract";
import { workspaceId } from "@holdfast/testkit";
import { expect, it } from "vitest";
import { type PodHealth, type WorkspaceView, withUse } from "./view.ts";

const [ours, theirs] = [podUidOf("pod-1"), podUidOf("pod-2")];
const pod = {
  name: "p",
  image: "i",
  node: undefined,
  restartCount: 0,
  lastTermination: undefined,
  termination: undefined,
};
const view: WorkspaceView = {
  id: workspaceId("demo"),
  state: "running",
  transition: { cause: "read" },
  identity: { claimUids: {}, podUid: ours },
  templateCurrent: false,
  pod,
  live: { executions: 0, sessions: 0, ports: 0 },
};
const use = { disk: { totalBytes: 2n, usedBytes: 1n, availableBytes: 1n, inodes: undefined }, memory: undefined };
const health: PodHealth = {
  serving: true,
  protocolVersion: 1,
  features: [],
  bootId: bootIdOf("b"),
  use,
  podUid: ours,
};

it("what a guest says to use is told beside its own pod, and beside no other", () => {
  expect(withUse(view, health).pod).toEqual({ ...pod, use });
  // The pod was replaced between the two answers.
  expect(withUse(view, { ...health, podUid: theirs })).toBe(view);
});

it("nothing is told to be in use where there is no pod, no answer, or an answer of an older agent", () => {
  const suspended = { ...view, identity: { claimUids: {} }, pod: undefined };
  expect(withUse(suspended, health)).toBe(suspended);
  expect(withUse(view, undefined)).toBe(view);
  expect(withUse(view, { ...health, use: undefined })).toBe(view);
});
