import { QuiesceScope } from "@holdfast/api/holdfast/guest/v1/disk_pb";
import { Deadline } from "@holdfast/async";
import type { AttachmentId, BootId, ExecutionId, SessionId } from "@holdfast/contract";
import { ManualClock } from "@holdfast/testkit";
import { GuestLost } from "@holdfast/workspace";
import { describe, expect, it } from "vitest";
import { LinkedExecutions } from "./linked-executions.ts";
import { LinkedSessions } from "./linked-sessions.ts";
import { quiesceResultOf } from "./quiesce-report.ts";
import { ScriptedLink } from "./scripted-link.testing.ts";
import { durationOf } from "./start-request.ts";

const executionId = "x" as ExecutionId;
const expectedBootId = "boot-1" as BootId;

function guest() {
  const scripted = new ScriptedLink();
  const clock = new ManualClock();
  const executions = new LinkedExecutions(scripted.link, clock, { executions: 0 }, () => undefined);
  const of = { attached: new Set<never>(), counts: { attachments: 0 }, unreached: () => undefined };
  return {
    scripted,
    executions,
    sessions: new LinkedSessions(scripted.link, clock, of),
    within: new Deadline(clock, 1_000),
  };
}

describe("an order to a guest says whom it means", () => {
  it("a signal and a cancel of a command: on which agent process", async () => {
    const { scripted, executions, within } = guest();
    await executions.signal({ executionId, signal: "SIGHUP", expectedBootId }, within);
    await executions.cancel({ executionId, graceMs: 1_500, expectedBootId }, within);
    expect(scripted.called.map(({ request }) => request)).toMatchObject([
      { executionId: "x", signal: "SIGHUP", expectedBootId },
      { executionId: "x", expectedBootId, grace: { seconds: 1n, nanos: 500_000_000 } },
    ]);
  });

  it("G12 input of a command: at which byte", async () => {
    const { scripted, executions, within } = guest();
    await executions.writeStdin({ executionId, offset: 7, data: Buffer.from("a"), end: true }, within);
    expect(scripted.called[0]?.request).toMatchObject({ executionId: "x", offset: 7n, end: true });
  });

  it("G18 the size of a terminal: as which attachment", async () => {
    const { scripted, sessions, within } = guest();
    const size = { columns: 80, rows: 24 };
    await sessions.resize({ sessionId: "s" as SessionId, attachmentId: "a-1" as AttachmentId, size }, within);
    expect(scripted.called[0]?.request).toMatchObject({ sessionId: "s", attachmentId: "a-1", size });
  });
});

describe("what a guest answers", () => {
  it("is no execution where it names none", async () => {
    const { scripted, executions, within } = guest();
    scripted.onCall = () => ({ execution: { executionId: "" }, bootId: "boot-1" });
    await expect(executions.get(executionId, within)).rejects.toBeInstanceOf(GuestLost);
  });

  it.each([
    [QuiesceScope.PID_NAMESPACE, "pid_namespace"],
    [QuiesceScope.OWNED_SESSIONS, "owned_sessions"],
    [QuiesceScope.UNSPECIFIED, "owned_sessions"],
  ] as const)(
    "G23 of how far a quiesce reached (%i) is taken for the narrower where it is not said: %s",
    (scope, told) => {
      const response = { scope, rounds: 1, stoppedCount: 0, stopped: [], notReached: [], holdId: "" };
      expect(quiesceResultOf(response as unknown as Parameters<typeof quiesceResultOf>[0]).scope).toBe(told);
    },
  );
});

describe("a time on the wire", () => {
  it.each([
    [0, 0n, 0],
    [1_500, 1n, 500_000_000],
    [2 ** 31 + 7, 2_147_483n, 655_000_000],
  ])("of %i ms is %s s and %i ns", (ms, seconds, nanos) => {
    expect(durationOf(ms)).toEqual({ seconds, nanos });
  });
});
