import { create, isFieldSet } from "@bufbuild/protobuf";
import {
  ContainerTerminationSchema,
  DiskUseSchema,
  FlushOutcome,
  FlushReportSchema,
  MemoryUseSchema,
  Origin,
  QuiesceOutcome,
  QuiesceScope,
  WorkspaceSchema,
  WorkspaceState,
} from "@holdfast/api/holdfast/v1/common_pb";
import { holderEpochFrom, sandboxUidOf } from "@holdfast/contract";
import { workspaceId } from "@holdfast/testkit";
import type { FlushReport, QuiesceReport, ResourceUse, WorkspaceView } from "@holdfast/workspace";
import { describe, expect, it } from "vitest";
import { presentNews, presentSummary, presentTemplate } from "./present-inventory.ts";
import { presentQuiesce, presentStopReports, presentWorkspace } from "./present-workspace.ts";
import { versionOfBookmark } from "./watch-bookmark.ts";

const bare: WorkspaceView = {
  id: workspaceId("w1"),
  state: "running",
  transition: { cause: "read" },
  identity: { claimUids: {} },
  templateCurrent: false,
  live: { executions: 0, sessions: 0, ports: 0 },
};
const told = (more: Partial<WorkspaceView> = {}) => create(WorkspaceSchema, presentWorkspace({ ...bare, ...more }));

describe("a workspace as callers see it", () => {
  it.each([
    ["starting", WorkspaceState.STARTING],
    ["running", WorkspaceState.RUNNING],
    ["suspending", WorkspaceState.SUSPENDING],
    ["suspended", WorkspaceState.SUSPENDED],
    ["deleting", WorkspaceState.DELETING],
    ["not_ready", WorkspaceState.NOT_READY],
  ] as const)("L1 is %s by its own name", (state, wire) => {
    expect(told({ state }).state).toBe(wire);
  });

  it.each([
    [undefined, Origin.UNSPECIFIED],
    ["created", Origin.CREATED],
    ["adopted_running", Origin.ADOPTED_RUNNING],
    ["resumed", Origin.RESUMED],
    ["already_open", Origin.ALREADY_OPEN],
  ] as const)("L9 has the origin %s by its own name", (origin, wire) => {
    expect(told({ origin }).origin).toBe(wire);
  });

  it("says nothing of what is not known: no epoch, no time, no pod, no health; a 0 that is known is present", () => {
    const unknown = told();
    expect(isFieldSet(unknown, WorkspaceSchema.field.holderEpoch)).toBe(false);
    expect(unknown).toMatchObject({ template: "", templateRevision: "", templateCurrent: false, root: "" });
    expect(unknown.identity).toMatchObject({ sandboxUid: "", claimUids: {}, podUid: "", bootId: "" });
    expect([unknown.pod, unknown.health, unknown.transition?.at, unknown.transition?.byEpoch]).toEqual(
      Array(4).fill(undefined),
    );
    const zero = holderEpochFrom(0);
    const known = told({ holderEpoch: zero, transition: { cause: "c", at: 0, epoch: zero, waitingFor: "w" } });
    expect(isFieldSet(known, WorkspaceSchema.field.holderEpoch)).toBe(true);
    expect(known.transition).toMatchObject({ cause: "c", waitingFor: "w", byEpoch: 0n, at: { seconds: 0n, nanos: 0 } });
  });

  const pod = {
    name: "p",
    image: "i",
    restartCount: 2,
    node: undefined,
    lastTermination: undefined,
    termination: undefined,
  };

  it("tells its pod, and nothing of it that is not known", () => {
    const bare = told({ pod }).pod;
    expect(bare).toMatchObject({ name: "p", image: "i", node: "", restartCount: 2, lastTermination: "" });
    expect([bare?.termination, bare?.disk, bare?.memory]).toEqual([undefined, undefined, undefined]);
    const more = { ...pod, node: "n", lastTermination: "OOMKilled, exit 137" };
    expect(told({ pod: more }).pod).toMatchObject({ node: "n", lastTermination: "OOMKilled, exit 137" });
  });

  it("tells how its container ended; a code of 0 is present, what the cluster does not say is absent", () => {
    const finishedAt = new Date(1_500);
    const { field } = ContainerTerminationSchema;
    const clean = told({ pod: { ...pod, termination: { reason: "Completed", exitCode: 0, finishedAt } } });
    expect(clean.pod?.termination).toMatchObject({ reason: "Completed", exitCode: 0, finishedAt: { seconds: 1n } });
    const dark = told({
      pod: { ...pod, termination: { reason: undefined, exitCode: undefined, finishedAt: undefined } },
    });
    const ended = dark.pod?.termination ?? expect.unreachable();
    expect([ended.reason, isFieldSet(ended, field.exitCode), ended.finishedAt]).toEqual(["", false, undefined]);
  });

  it("tells what its guest says to use; one that is not known is absent beside the other, and so is a bound that is none", () => {
    const disk = { totalBytes: 2n ** 63n, usedBytes: 1n, availableBytes: 0n, inodes: undefined };
    const memory = { usedBytes: 5n, workingSetBytes: undefined, limitBytes: undefined };
    const used = (use: ResourceUse) => told({ pod: { ...pod, use } }).pod ?? expect.unreachable();
    const onDisk = used({ disk, memory: undefined });
    expect(onDisk.disk).toMatchObject({ totalBytes: 2n ** 63n, usedBytes: 1n, availableBytes: 0n });
    expect(onDisk.disk && isFieldSet(onDisk.disk, DiskUseSchema.field.totalInodes)).toBe(false);
    expect(onDisk.memory).toBeUndefined();
    const counted = used({ disk: { ...disk, inodes: { total: 9n, used: 0n } }, memory });
    expect(counted.disk).toMatchObject({ totalInodes: 9n, usedInodes: 0n });
    const { workingSetBytes, limitBytes } = MemoryUseSchema.field;
    const inMemory = counted.memory ?? expect.unreachable();
    expect([inMemory.usedBytes, isFieldSet(inMemory, workingSetBytes), isFieldSet(inMemory, limitBytes)]).toEqual([
      5n,
      false,
      false,
    ]);
  });

  it("tells what this process holds open in it", () => {
    const held = told({ live: { executions: 1, sessions: 2, ports: 3 } });
    expect(held).toMatchObject({ liveExecutions: 1, liveSessions: 2, livePorts: 3 });
  });
});

describe("what became of a stop's flush and quiesce", () => {
  it.each([
    ["flushed", FlushOutcome.FLUSHED],
    ["unsupported", FlushOutcome.UNSUPPORTED],
    ["unreachable", FlushOutcome.UNREACHABLE],
    ["skipped", FlushOutcome.SKIPPED],
  ] as const)(
    "L26 a flush that was %s is told by its own name, with a time only where it took one",
    (outcome, wire) => {
      const flush: FlushReport = { outcome, cause: "why", ...(outcome === "flushed" && { tookMs: 0 }) };
      const reports = presentStopReports({ flush, quiesce: undefined });
      const message = create(FlushReportSchema, reports.flush);
      expect(message).toMatchObject({ outcome: wire, cause: "why" });
      expect(isFieldSet(message, FlushReportSchema.field.took)).toBe(outcome === "flushed");
      expect(reports.quiesce).toBeUndefined();
    },
  );

  it.each([
    ["quiesced", "pid_namespace", QuiesceOutcome.QUIESCED, QuiesceScope.PID_NAMESPACE],
    ["quiesced", "owned_sessions", QuiesceOutcome.QUIESCED, QuiesceScope.OWNED_SESSIONS],
    ["unsupported", undefined, QuiesceOutcome.UNSUPPORTED, QuiesceScope.UNSPECIFIED],
    ["skipped", undefined, QuiesceOutcome.SKIPPED, QuiesceScope.UNSPECIFIED],
  ] as const)(
    "L27 a quiesce that was %s within %s is told so, at most 64 programs by name",
    (outcome, scope, wire, far) => {
      const programs = Array.from({ length: 65 }, (_, pid) => ({ pid, name: "make", lastSignal: "SIGTERM" }));
      const report: QuiesceReport = {
        outcome,
        cause: "why",
        scope,
        rounds: 2,
        stopped: programs,
        stoppedCount: 65,
        notReached: programs,
      };
      const told = presentQuiesce(report);
      expect(told).toMatchObject({ outcome: wire, scope: far, cause: "why", rounds: 2, stoppedCount: 65 });
      expect([told.stopped?.length, told.notReached?.length]).toEqual([64, 64]);
      expect(told.stopped?.[1]).toEqual({ pid: 1n, name: "make", lastSignal: "SIGTERM" });
    },
  );
});

describe("an object of the inventory as callers see it", () => {
  const summary = {
    id: workspaceId("w1"),
    mode: "Running",
    template: "small",
    createdAt: new Date(1_500),
    modeChangedAt: undefined,
    holderEpoch: undefined,
    sandboxUid: sandboxUidOf("uid-1"),
  } as const;

  it("has no time of a change that never was and no epoch that cannot be read; a 0 is present", () => {
    const unknown = presentSummary(summary);
    expect(unknown).toEqual({
      workspaceId: "w1",
      mode: 1,
      template: "small",
      createdAt: expect.objectContaining({ seconds: 1n, nanos: 500_000_000 }),
      sandboxUid: "uid-1",
    });
    const known = presentSummary({ ...summary, mode: "Suspended", modeChangedAt: new Date(2_001), holderEpoch: 0 });
    expect(known).toMatchObject({ mode: 2, modeChangedAt: { seconds: 2n, nanos: 1_000_000 }, holderEpoch: 0n });
  });

  it("is told as added, changed or removed; a bookmark is bound to what it was made under", () => {
    for (const t of ["added", "changed", "removed"] as const) {
      expect(presentNews({ t, workspace: summary }, {}).event).toMatchObject({ case: t, value: { workspaceId: "w1" } });
    }
    expect(presentNews({ t: "restarted" }, {}).event).toEqual({ case: "restarted", value: {} });
    const { event } = presentNews({ t: "bookmark", version: "17" }, { namespace: "a" });
    if (event?.case !== "bookmark") throw new Error("no bookmark");
    expect(versionOfBookmark(event.value, { namespace: "a" })).toBe("17");
  });

  it("a template is usable exactly where there is no problem with it", () => {
    const named = { name: "small", isDefault: true, image: "i" };
    expect(presentTemplate({ ...named, problem: undefined })).toEqual({
      name: "small",
      usable: true,
      problem: "",
      default: true,
      image: "i",
    });
    expect(presentTemplate({ name: "odd", isDefault: false, image: undefined, problem: "no disk" })).toEqual({
      name: "odd",
      usable: false,
      problem: "no disk",
      default: false,
      image: "",
    });
  });
});
