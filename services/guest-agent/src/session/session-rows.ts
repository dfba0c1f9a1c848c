import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  SessionKind as KindOnWire,
  type SessionExitSchema,
  type SessionSchema,
} from "@holdfast/api/holdfast/guest/v1/session_pb";
import type { Session, SessionExit } from "./session.ts";

/** A session as it is told: never its environment. */
export function rowOf(session: Session): MessageInitShape<typeof SessionSchema> {
  const { wish, log, exit, lastInputAtMs, lastOutputAtMs } = session;
  const isTerminal = wish.kind === "terminal";
  return {
    sessionId: wish.id,
    kind: isTerminal ? KindOnWire.TERMINAL : KindOnWire.DETACHED,
    command: wish.command,
    args: [...wish.args],
    startedAt: timestampFromMs(session.startedAtMs),
    ...(lastInputAtMs === undefined ? {} : { lastInputAt: timestampFromMs(lastInputAtMs) }),
    ...(lastOutputAtMs === undefined ? {} : { lastOutputAt: timestampFromMs(lastOutputAtMs) }),
    nextOffset: BigInt(log.end),
    droppedBytes: BigInt(log.start),
    ...(exit === undefined ? {} : { exit: exitOnWire(exit) }),
    attached: session.attachments.isAttended,
    pid: BigInt(session.pid),
    ...(isTerminal ? { size: session.size } : {}),
    clientBound: wish.clientBound,
  };
}

export function exitOnWire({ status, message, atMs }: SessionExit): MessageInitShape<typeof SessionExitSchema> {
  return {
    outcome: "signal" in status ? { case: "signal", value: status.signal } : { case: "code", value: status.code },
    message,
    at: timestampFromMs(atMs),
  };
}
