import { create } from "@bufbuild/protobuf";
import {
  type AttachTerminalResponse,
  AttachTerminalResponseSchema,
  type Session,
  type SessionExit,
  SessionExitSchema,
  SessionKind,
  SessionSchema,
  type TerminalResponse,
  TerminalResponseSchema,
} from "@holdfast/api/holdfast/v1/session_pb";
import { outputChunkMaxBytes } from "@holdfast/contract";
import type { SessionExit as Exit, SessionEvent, SessionInfo, TerminalEvent } from "@holdfast/workspace";
import { timestampOf } from "./protobuf-time.ts";

export function presentSession(session: SessionInfo): Session {
  const { lastInputAtMs, lastOutputAtMs, exit, size } = session;
  return create(SessionSchema, {
    sessionId: session.sessionId,
    kind: session.kind === "terminal" ? SessionKind.TERMINAL : SessionKind.DETACHED,
    command: session.command,
    args: [...session.args],
    startedAt: timestampOf(session.startedAtMs),
    ...(lastInputAtMs === undefined ? {} : { lastInputAt: timestampOf(lastInputAtMs) }),
    ...(lastOutputAtMs === undefined ? {} : { lastOutputAt: timestampOf(lastOutputAtMs) }),
    nextOffset: BigInt(session.nextOffset),
    droppedBytes: BigInt(session.droppedBytes),
    attached: session.attached,
    ...(exit === undefined ? {} : { exit: presentSessionExit(exit) }),
    ...(size === undefined ? {} : { size: { columns: size.columns, rows: size.rows } }),
  });
}

export function presentSessionExit({ status, message, atMs }: Exit): SessionExit {
  return create(SessionExitSchema, {
    status: status.t === "code" ? { case: "exitCode", value: status.code } : { case: "signal", value: status.signal },
    message: message ?? "",
    at: timestampOf(atMs),
  });
}

/** One event as AttachTerminal sends it: one response, or several where a piece of output is larger than a chunk may be. */
export function* presentAttach(event: SessionEvent): Generator<AttachTerminalResponse> {
  for (const part of partsOf(event)) yield create(AttachTerminalResponseSchema, { event: eventOf(part) });
}

/** The same as Terminal sends it. */
export function* presentTerminal(event: TerminalEvent): Generator<TerminalResponse> {
  if (event.t === "typed") {
    const value = { nextInputSequence: BigInt(event.nextSequence) };
    yield create(TerminalResponseSchema, { event: { case: "typed", value } });
    return;
  }
  for (const part of partsOf(event)) yield create(TerminalResponseSchema, { event: eventOf(part) });
}

function* partsOf(event: SessionEvent): Generator<SessionEvent> {
  if (event.t !== "output") {
    yield event;
    return;
  }
  for (let at = 0; at < event.data.byteLength; at += outputChunkMaxBytes) {
    yield { t: "output", offset: event.offset + at, data: event.data.subarray(at, at + outputChunkMaxBytes) };
  }
}

function eventOf(event: SessionEvent) {
  switch (event.t) {
    case "attached": {
      const { attachmentId, bootId } = event;
      const nextInputSequence = BigInt(event.nextInputSequence);
      const session = presentSession(event.session);
      return { case: "attached" as const, value: { attachmentId, nextInputSequence, bootId, session } };
    }
    case "output":
      return { case: "data" as const, value: { offset: BigInt(event.offset), data: event.data } };
    case "gap":
      return { case: "gap" as const, value: { from: BigInt(event.from), to: BigInt(event.to) } };
    case "exited": {
      const value = { exit: presentSessionExit(event.exit), nextOffset: BigInt(event.nextOffset) };
      return { case: "exited" as const, value };
    }
  }
}
