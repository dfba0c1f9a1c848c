import { timestampMs } from "@bufbuild/protobuf/wkt";
import {
  type SessionExit as ExitOnWire,
  SessionKind as SessionKindOnWire,
  type Session as SessionOnWire,
} from "@holdfast/api/holdfast/guest/v1/session_pb";
import { isSessionId } from "@holdfast/contract";
import { LinkProtocolError } from "@holdfast/guest-link";
import type { SessionExit, SessionInfo } from "@holdfast/workspace";

/** A session as the guest describes it. Throws LinkProtocolError where that is none. */
export function sessionInfoOf(session: SessionOnWire | undefined): SessionInfo {
  if (session === undefined || !isSessionId(session.sessionId)) {
    throw new LinkProtocolError("an answer about a session that names none");
  }
  const { startedAt, lastInputAt, lastOutputAt, size } = session;
  if (startedAt === undefined) throw new LinkProtocolError("a session that was never started");
  return {
    sessionId: session.sessionId,
    kind: session.kind === SessionKindOnWire.DETACHED ? "detached" : "terminal",
    command: session.command,
    args: session.args,
    startedAtMs: timestampMs(startedAt),
    lastInputAtMs: lastInputAt && timestampMs(lastInputAt),
    lastOutputAtMs: lastOutputAt && timestampMs(lastOutputAt),
    nextOffset: Number(session.nextOffset),
    droppedBytes: Number(session.droppedBytes),
    exit: session.exit && sessionExitOf(session.exit),
    attached: session.attached,
    pid: Number(session.pid),
    size: size && { columns: size.columns, rows: size.rows },
    clientBound: session.clientBound,
  };
}

/** How a session's program ended. Throws LinkProtocolError for an end that says nothing. */
export function sessionExitOf(exit: ExitOnWire | undefined): SessionExit {
  if (exit?.outcome.case === undefined) throw new LinkProtocolError("an end that says neither code nor signal");
  const { outcome, message, at } = exit;
  return {
    status: outcome.case === "signal" ? { t: "signal", signal: outcome.value } : { t: "code", code: outcome.value },
    message: message === "" ? undefined : message,
    atMs: at === undefined ? 0 : timestampMs(at),
  };
}
