import { randomUUID } from "node:crypto";
import {
  AttachMode,
  type AttachTerminalRequest,
  type OpenTerminalRequest,
  type ReadSessionRequest,
  type StartDetachedRequest,
  type TerminalProgram,
  type TerminalRequest,
  type TerminalSize as TerminalSizeMessage,
  type TerminalStart,
  TerminalVerb as VerbOnWire,
} from "@holdfast/api/holdfast/v1/session_pb";
import { attachmentIdOf, bootIdOf, isSessionId, type SessionId } from "@holdfast/contract";
import type {
  AttachSessionWish,
  OpenSessionWish,
  TerminalInput,
  TerminalSize,
  TerminalVerb,
  TerminalWish,
} from "@holdfast/workspace";
import { invalidRequest } from "./interceptors/request-validation.ts";
import { durationMs } from "./protobuf-time.ts";

/** The id of a request that has passed validation. */
export function parseSessionId(text: string): SessionId {
  if (isSessionId(text)) return text;
  throw invalidRequest([{ field: "session_id", description: "must be 1 to 64 of letters, digits, '.', '_' and '-'" }]);
}

/** An offset beyond exact numbers is beyond any output. */
export function parseOffset(offset: bigint): number {
  return offset > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(offset);
}

export function parseSequence(sequence: bigint): number {
  if (sequence <= BigInt(Number.MAX_SAFE_INTEGER)) return Number(sequence);
  throw invalidRequest([{ field: "sequence", description: "is no sequence that was ever told" }]);
}

export function parseSize(size: TerminalSizeMessage | undefined): TerminalSize | undefined {
  return size && { columns: size.columns, rows: size.rows };
}

/** What OpenTerminal asks for. An id is minted where the caller chose none. */
export function parseOpenTerminal({ sessionId, program, expectedBootId }: OpenTerminalRequest): OpenSessionWish {
  return parseProgram(sessionId, program, expectedBootId);
}

/** What StartDetached asks for, likewise. */
export function parseStartDetached(request: StartDetachedRequest): OpenSessionWish {
  const { command, args, cwd, env, expectedBootId } = request;
  return {
    sessionId: parseSessionId(request.sessionId || randomUUID()),
    kind: "detached",
    command,
    args,
    cwd: cwd || undefined,
    env,
    size: undefined,
    login: false,
    clientBound: false,
    expectedBootId: expectedBootId === "" ? undefined : bootIdOf(expectedBootId),
  };
}

const sizeOfObserver = "is an EXCLUSIVE attachment's";

type AttachFields = Pick<
  AttachTerminalRequest,
  "sessionId" | "fromOffset" | "mode" | "size" | "attachmentId" | "expectedBootId"
>;

export function parseAttach(request: AttachFields): AttachSessionWish {
  const { attachmentId, expectedBootId } = request;
  const mode = request.mode === AttachMode.OBSERVE ? "observe" : "exclusive";
  if (mode === "observe" && request.size !== undefined) {
    throw invalidRequest([{ field: "size", description: sizeOfObserver }]);
  }
  return {
    sessionId: parseSessionId(request.sessionId),
    fromOffset: parseOffset(request.fromOffset),
    mode,
    size: parseSize(request.size),
    attachmentId: attachmentId === "" ? undefined : attachmentIdOf(attachmentId),
    expectedBootId: expectedBootId === "" ? undefined : bootIdOf(expectedBootId),
  };
}

const verbs: Record<VerbOnWire, TerminalVerb> = {
  [VerbOnWire.UNSPECIFIED]: "open_or_attach",
  [VerbOnWire.OPEN]: "open",
  [VerbOnWire.ATTACH]: "attach",
  [VerbOnWire.OPEN_OR_ATTACH]: "open_or_attach",
};

/** How a terminal's stream begins. */
export function parseTerminalStart(start: TerminalStart): TerminalWish {
  assertFits(start);
  const verb = start.sessionId === "" ? "open" : verbs[start.verb];
  const sessionId = start.sessionId || randomUUID();
  const opened = parseProgram(sessionId, start.program, start.expectedBootId);
  const attach = parseAttach({ ...start, sessionId });
  return {
    verb,
    program: { ...opened, size: attach.size ?? opened.size, clientBound: start.persistent === false },
    attach,
  };
}

/** What cannot be meant together is refused, never ignored. */
function assertFits(start: TerminalStart): void {
  const { sessionId, verb, fromOffset, attachmentId, mode, persistent, program, size } = start;
  const attaches = verb === VerbOnWire.ATTACH;
  const opens = verb === VerbOnWire.OPEN || (!attaches && sessionId === "");
  const found: { field: string; description: string }[] = [];
  const refuse = (field: string, description: string): void =>
    void found.push({ field: `start.${field}`, description });
  if (attaches && sessionId === "") refuse("session_id", "must be given to attach to it");
  if (attaches && program !== undefined) refuse("program", "is not opened by ATTACH");
  if (attaches && persistent === false)
    refuse("persistent", "is of a program that the stream opens, and ATTACH opens none");
  if (opens && fromOffset > 0n) refuse("from_offset", "must be 0 where a terminal is opened");
  if (opens && attachmentId !== "") refuse("attachment_id", "cannot be of a terminal that is opened");
  if (!attaches && mode === AttachMode.OBSERVE) refuse("mode", "OBSERVE is for ATTACH: it opens nothing");
  if (mode === AttachMode.OBSERVE && size !== undefined) refuse("size", sizeOfObserver);
  if (found.length > 0) throw invalidRequest(found);
}

/** A request after the first. */
export function parseTerminalInput({ request }: TerminalRequest): TerminalInput {
  switch (request.case) {
    case "input":
      return { t: "input", data: request.value };
    case "resize":
      return { t: "resize", size: { columns: request.value.columns, rows: request.value.rows } };
    case "signal":
      return { t: "signal", signal: request.value };
    case "detach":
      return { t: "detach" };
    default:
      throw invalidRequest([{ field: "start", description: "comes first, and once" }]);
  }
}

export function parseReadSession(request: ReadSessionRequest) {
  return {
    sessionId: parseSessionId(request.sessionId),
    fromOffset: parseOffset(request.fromOffset),
    maxBytes: request.maxBytes || undefined,
    waitMs: request.wait ? durationMs(request.wait) : 0,
  };
}

function parseProgram(
  sessionId: string,
  program: TerminalProgram | undefined,
  expectedBootId: string,
): OpenSessionWish {
  return {
    sessionId: parseSessionId(sessionId || randomUUID()),
    kind: "terminal",
    command: program?.command ?? "",
    args: program?.args ?? [],
    cwd: program?.cwd || undefined,
    env: program?.env ?? {},
    size: parseSize(program?.size),
    login: program?.login ?? false,
    clientBound: false,
    expectedBootId: expectedBootId === "" ? undefined : bootIdOf(expectedBootId),
  };
}
