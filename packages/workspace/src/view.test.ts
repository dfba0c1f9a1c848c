import { bootIdOf, podUidOf } from "@holdfast/contract";
import { workspaceId } from "@holdfast/testkit";
import { expect, it } from "vitest";
import { type PodHealth, viewWithHealth, type WorkspaceView } from "./view.ts";

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

it("L40 what a guest says is told beside its own pod, and beside no other", () => {
  expect(viewWithHealth(view, health)).toEqual({ view: { ...view, pod: { ...pod, use } }, health });
  // The pod was replaced between the two answers.
  const replaced = viewWithHealth(view, { ...health, podUid: theirs });
  expect(replaced).toEqual({ view, health: undefined });
  expect(replaced.view).toBe(view);
});

it("nothing is told to be in use where there is no pod, no answer, or an answer of an older agent", () => {
  const suspended = { ...view, identity: { claimUids: {} }, pod: undefined };
  expect(viewWithHealth(suspended, health)).toEqual({ view: suspended, health: undefined });
  expect(viewWithHealth(view, undefined)).toEqual({ view, health: undefined });
  const older = { ...health, use: undefined };
  expect(viewWithHealth(view, older)).toEqual({ view, health: older });
});
