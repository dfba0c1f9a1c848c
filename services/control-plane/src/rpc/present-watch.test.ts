import { create } from "@bufbuild/protobuf";
import { WorkspaceState } from "@holdfast/api/holdfast/v1/common_pb";
import {
  AgentHealth,
  GuestEvidence,
  StartStep,
  WatchWorkspaceResponseSchema,
} from "@holdfast/api/holdfast/v1/workspace_pb";
import { bootIdOf, podUidOf, sandboxUidOf } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import { workspaceId } from "@holdfast/testkit";
import type { ChronicleEvent, WatchItem, WorkspaceEvent, WorkspaceView } from "@holdfast/workspace";
import { describe, expect, it } from "vitest";
import { presentWatchItem } from "./present-watch.ts";

const id = workspaceId("w1");
const view: WorkspaceView = {
  id,
  state: "suspending",
  transition: { cause: "suspendAccepted" },
  identity: { claimUids: {} },
  templateCurrent: false,
  live: { executions: 0, sessions: 0, ports: 0 },
};
const sandboxUid = sandboxUidOf("uid-1");
const first = { podUid: podUidOf("pod-1"), bootId: bootIdOf("boot-1") };
const second = { podUid: podUidOf("pod-2"), bootId: undefined };

type ItemOf<T> = T extends WatchItem ? Omit<T, "at" | "sequence"> : never;
const told = (item: ItemOf<WatchItem>) =>
  create(WatchWorkspaceResponseSchema, presentWatchItem({ at: 1_500, sequence: 3, ...item } as WatchItem, "c"));
const toldEvent = (event: ChronicleEvent) => told({ t: "event", event }).event;
const noticed = (event: WorkspaceEvent) => toldEvent({ t: "noticed", event, sandboxUid });

describe("what a watcher of a workspace hears", () => {
  it("carries the cursor that resumes after it, and its time", () => {
    expect(told({ t: "gap" })).toMatchObject({
      cursor: "c",
      at: { seconds: 1n, nanos: 500_000_000 },
      event: { case: "gap" },
    });
  });

  it("begins with how it stands; what does not exist has its id and no state", () => {
    expect(told({ t: "snapshot", id, view }).event).toMatchObject({
      case: "snapshot",
      value: { workspaceId: "w1", state: WorkspaceState.SUSPENDING },
    });
    expect(told({ t: "snapshot", id, view: undefined }).event).toMatchObject({
      case: "snapshot",
      value: { workspaceId: "w1", state: WorkspaceState.UNSPECIFIED },
    });
  });

  it("tells changes, epochs, both kinds of an end", () => {
    expect(toldEvent({ t: "changed", view })).toMatchObject({ case: "changed", value: { workspaceId: "w1" } });
    expect(toldEvent({ t: "epoch_changed", previous: 4, current: 5 })).toMatchObject({
      case: "epochChanged",
      value: { previous: 4n, current: 5n },
    });
    for (const replaced of [true, false]) {
      expect(toldEvent({ t: "gone", replaced })).toMatchObject({ case: "gone", value: { replaced } });
    }
  });

  it.each([
    ["created", StartStep.CREATED],
    ["scheduled", StartStep.SCHEDULED],
    ["image_pulling", StartStep.IMAGE_PULLING],
    ["pod_running", StartStep.POD_RUNNING],
    ["bound", StartStep.BOUND],
    ["probed", StartStep.PROBED],
  ] as const)("tells the step %s by its own name", (step, wire) => {
    expect(toldEvent({ t: "progress", step, message: "m" })).toMatchObject({
      case: "progress",
      value: { step: wire, message: "m" },
    });
  });

  it.each([
    ["pod_replaced", "podReplaced"],
    ["container_restarted", "containerRestarted"],
  ] as const)("L41 tells %s with both identities, an unknown boot id as none", (t, wire) => {
    expect(noticed({ t, sandboxUid, previous: first, current: second })).toMatchObject({
      case: wire,
      value: {
        previous: { sandboxUid: "uid-1", podUid: "pod-1", bootId: "boot-1" },
        current: { sandboxUid: "uid-1", podUid: "pod-2", bootId: "" },
      },
    });
  });

  it.each([
    ["ok", "unknown", AgentHealth.OK, GuestEvidence.UNSPECIFIED],
    ["retiring", "pod_gone", AgentHealth.RETIRING, GuestEvidence.POD_GONE],
    ["unreachable", "pod_replaced", AgentHealth.UNREACHABLE, GuestEvidence.POD_REPLACED],
    ["ok", "container_restarted", AgentHealth.OK, GuestEvidence.CONTAINER_RESTARTED],
    ["ok", "same_guest", AgentHealth.OK, GuestEvidence.SAME_GUEST],
  ] as const)(
    "L43 tells a cancellation that was not confirmed: agent %s, evidence %s",
    (agent, evidence, wire, found) => {
      const error = new HoldfastError("CANCELLATION_UNCONFIRMED", { message: "m" });
      const event = { t: "cancellation_unconfirmed", executionId: "e1" as never, agent, evidence, error } as const;
      expect(noticed({ ...event, previous: first, current: second })).toMatchObject({
        case: "cancellationUnconfirmed",
        value: {
          executionId: "e1",
          agent: wire,
          evidence: found,
          previous: { sandboxUid: "uid-1", podUid: "pod-1", bootId: "boot-1" },
          current: { sandboxUid: "uid-1", podUid: "pod-2", bootId: "" },
        },
      });
      const bare = noticed({ ...event, previous: first, current: undefined });
      expect(bare.case === "cancellationUnconfirmed" && bare.value.current).toBeUndefined();
      expect(bare.case).toBe("cancellationUnconfirmed");
    },
  );
});
