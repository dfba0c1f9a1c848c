import { isFieldSet } from "@bufbuild/protobuf";
import { SessionKind, SessionSchema } from "@holdfast/api/holdfast/v1/session_pb";
import { attachmentIdOf, bootIdOf } from "@holdfast/contract";
import type { SessionInfo } from "@holdfast/workspace";
import { describe, expect, it } from "vitest";
import { presentAttach, presentSession, presentTerminal } from "./present-session.ts";
import { SessionProgress } from "./session-progress.ts";

const session: SessionInfo = {
  sessionId: "s" as never,
  kind: "terminal",
  command: "sh",
  args: ["-l"],
  startedAtMs: 1_500,
  lastInputAtMs: undefined,
  lastOutputAtMs: undefined,
  nextOffset: 40,
  droppedBytes: 8,
  attached: false,
  exit: undefined,
  size: undefined,
  pid: 7,
  clientBound: false,
};

describe("a session as callers see it", () => {
  it("says nothing of what never was: no input, no output, no end, no size", () => {
    const told = presentSession(session);
    const { lastInputAt, lastOutputAt, exit, size } = SessionSchema.field;
    expect([lastInputAt, lastOutputAt, exit, size].map((field) => isFieldSet(told, field))).toEqual(
      Array(4).fill(false),
    );
    expect(told).toMatchObject({ kind: SessionKind.TERMINAL, nextOffset: 40n, droppedBytes: 8n, attached: false });
  });

  it("tells what was, a time of 0 and a code of 0 too", () => {
    const exit = { status: { t: "code", code: 0 }, atMs: 0, message: undefined } as const;
    const told = presentSession({
      ...session,
      kind: "detached",
      lastInputAtMs: 0,
      lastOutputAtMs: 1,
      attached: true,
      exit,
      size: { columns: 80, rows: 24 },
    });
    expect(told).toMatchObject({
      kind: SessionKind.DETACHED,
      lastInputAt: { seconds: 0n, nanos: 0 },
      lastOutputAt: { nanos: 1_000_000 },
      attached: true,
      exit: { status: { case: "exitCode", value: 0 }, message: "", at: { seconds: 0n } },
      size: { columns: 80, rows: 24 },
    });
    const signalled = presentSession({ ...session, exit: { ...exit, status: { t: "signal", signal: "SIGHUP" } } });
    expect(signalled.exit?.status).toEqual({ case: "signal", value: "SIGHUP" });
  });
});

describe("an event of a terminal", () => {
  it("is cut at 32 KiB, each piece with its own offset, on both kinds of stream", () => {
    const output = { t: "output", offset: 5, data: new Uint8Array(32_769) } as const;
    for (const present of [presentAttach, presentTerminal]) {
      expect(
        [...present(output)].map(({ event }) => event.case === "data" && [event.value.offset, event.value.data.length]),
      ).toEqual([
        [5n, 32_768],
        [32_773n, 1],
      ]);
      expect([...present({ t: "gap", from: 1, to: 9 })]).toMatchObject([
        { event: { case: "gap", value: { from: 1n, to: 9n } } },
      ]);
    }
    expect([...presentTerminal({ t: "typed", nextSequence: 3 })]).toMatchObject([
      { event: { case: "typed", value: { nextInputSequence: 3n } } },
    ]);
  });
});

describe("what a drain says of a terminal's stream", () => {
  const start = { sessionId: "s" as never, fromOffset: 7, attachmentId: undefined };
  const attached = {
    t: "attached",
    attachmentId: attachmentIdOf("a"),
    nextInputSequence: 1,
    offset: 7,
    bootId: bootIdOf("b"),
    session,
  } as const;

  it("claims no attachment that was not told, and names where to go on", () => {
    const progress = new SessionProgress(start);
    expect(progress.letGoByDrain()).toMatchObject({
      reason: "SERVICE_DRAINING",
      message: expect.stringContaining("not known to have been attached to"),
      metadata: { session_id: "s", offset: "7", attachment_id: "", boot_id: "" },
    });
    for (const event of [
      attached,
      { t: "output", offset: 7, data: new Uint8Array(3) },
      { t: "gap", from: 10, to: 12 },
    ] as const) {
      for (const presented of presentAttach(event)) progress.delivered(presented);
    }
    expect(progress.letGoByDrain()).toMatchObject({
      message: expect.stringContaining("Its program goes on, and its attachment is kept for 60 s."),
      metadata: { offset: "12", attachment_id: "a", boot_id: "b" },
    });
  });

  it.each([
    [true, "it ends unless somebody attaches within 60 s"],
    [false, "Its program goes on"],
  ])("of one that may have started its program (bound to its client: %s) says what becomes of it", (bound, said) => {
    const progress = new SessionProgress(start, { startedBound: () => bound });
    expect(progress.letGoByDrain()).toMatchObject({
      reason: "SESSION_OUTCOME_UNKNOWN",
      message: expect.stringContaining("or ended with the guest's agent"),
      metadata: { session_id: "s" },
    });
    for (const presented of presentTerminal(attached)) progress.delivered(presented);
    expect(progress.letGoByDrain()).toMatchObject({
      reason: "SERVICE_DRAINING",
      message: expect.stringContaining(said),
    });
  });
});
