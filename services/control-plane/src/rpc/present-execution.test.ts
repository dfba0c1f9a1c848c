import { isFieldSet } from "@bufbuild/protobuf";
import { ExecutionSchema, ExecutionState, GapReason, OutputStream } from "@holdfast/api/holdfast/v1/execution_pb";
import { executionId, executionWish } from "@holdfast/testkit";
import type { ExecutionExit, GuestExecution } from "@holdfast/workspace";
import { describe, expect, it } from "vitest";
import { ExecutionProgress, FollowerProgress } from "./execution-progress.ts";
import { type PresentedEvent, presentExecution, presentExecutionEvent, presentExit } from "./present-execution.ts";

const exit: ExecutionExit = {
  status: { t: "code", code: 0 },
  timedOut: false,
  leftovers: [],
  outputBytes: 3,
  ranMs: 1_500,
  message: undefined,
};
const execution: GuestExecution = {
  executionId: executionId("x"),
  command: "make",
  args: ["all"],
  startedAtMs: 1_500,
  pid: 7,
  retainOutput: true,
  outputBytes: 40,
  keptFrom: 8,
  exit: undefined,
  unconfirmed: false,
  hasClient: true,
};
const sizes = (bytes: number) =>
  [...presentExecutionEvent({ t: "output", stream: "stderr", offset: 5, data: new Uint8Array(bytes) })].map(
    ({ event }) => (event.case === "output" ? [event.value.offset, event.value.data.length, event.value.stream] : []),
  );

describe("a command as callers see it", () => {
  it.each([
    [undefined, false, ExecutionState.RUNNING],
    [exit, false, ExecutionState.EXITED],
    [undefined, true, ExecutionState.UNCONFIRMED],
    [exit, true, ExecutionState.UNCONFIRMED],
  ] as const)("with the exit %o and an unconfirmed end %s is in state %i", (ended, unconfirmed, state) => {
    const told = presentExecution({ ...execution, exit: ended, unconfirmed });
    expect(told.state).toBe(state);
    expect(isFieldSet(told, ExecutionSchema.field.exited)).toBe(ended !== undefined);
  });

  it("tells what it is and what is kept of it", () => {
    expect(presentExecution(execution)).toMatchObject({
      executionId: "x",
      command: "make",
      args: ["all"],
      startedAt: { seconds: 1n, nanos: 500_000_000 },
      outputBytes: 40n,
      keptFrom: 8n,
      retainOutput: true,
      pid: 7,
    });
  });

  it("ends by a code, which may be 0, or by a signal", () => {
    expect(presentExit(exit)).toMatchObject({
      status: { case: "exitCode", value: 0 },
      outputBytes: 3n,
      ran: { seconds: 1n, nanos: 500_000_000 },
      message: "",
    });
    expect(presentExit({ ...exit, status: { t: "signal", signal: "SIGKILL" } }).status).toEqual({
      case: "signal",
      value: "SIGKILL",
    });
  });
});

describe("an event of a command", () => {
  it("is cut at 32 KiB, each piece with its own offset", () => {
    const { STDERR } = OutputStream;
    expect(sizes(32_768)).toEqual([[5n, 32_768, STDERR]]);
    expect(sizes(32_769)).toEqual([
      [5n, 32_768, STDERR],
      [32_773n, 1, STDERR],
    ]);
    expect(sizes(0)).toEqual([]);
  });

  it.each([
    ["max_output", GapReason.MAX_OUTPUT],
    ["dropped", GapReason.DROPPED],
  ] as const)("a gap by %s says so", (reason, wire) => {
    expect([...presentExecutionEvent({ t: "gap", from: 1, to: 9, reason })]).toMatchObject([
      { event: { case: "gap", value: { from: 1n, to: 9n, reason: wire } } },
    ]);
  });
});

describe("what a drain says of a command's call", () => {
  const deliver = (progress: { delivered(event: PresentedEvent): void }) => {
    for (const event of [
      { t: "output", stream: "stdout", offset: 10, data: new Uint8Array(5) },
      { t: "gap", from: 15, to: 40, reason: "dropped" },
    ] as const) {
      for (const presented of presentExecutionEvent(event)) progress.delivered(presented);
    }
  };

  it("names where a follower goes on: behind the last output or gap, at first where it began; it may be made again", () => {
    const wish = {
      executionId: executionId("x"),
      fromOffset: 10,
      maxOutputBytes: undefined,
      expectedBootId: undefined,
    };
    const follower = new FollowerProgress(wish);
    expect(follower.detachedByDrain()).toMatchObject({ status: "UNAVAILABLE", metadata: { next_offset: "10" } });
    deliver(follower);
    expect(follower.detachedByDrain().metadata).toMatchObject({ next_offset: "40", why: "service_draining" });
  });

  it.each([
    ["cancel", false, /may have been started as execution x1; being bound to its client, it is ended/],
    ["detach", false, /may have been started as execution x1; start it again under the same id/],
    ["cancel", true, /goes on in its workspace as execution x1; being bound to its client, it is ended/],
    ["detach", true, /goes on in its workspace as execution x1; attach to it by its id, from offset 40/],
  ] as const)(
    "of a start with %s that had begun %s: its outcome is not known, and what to do",
    (onDisconnect, begun, said) => {
      const progress = new ExecutionProgress(executionWish({ onDisconnect }));
      if (begun) progress.started();
      deliver(progress);
      const told = progress.detachedByDrain();
      expect(told).toMatchObject({ status: "UNKNOWN", metadata: { execution_id: "x1", next_offset: "40" } });
      expect(told.message).toMatch(said);
    },
  );
});
