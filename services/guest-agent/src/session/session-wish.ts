import { SessionKind as KindOnWire, type OpenSessionRequest } from "@holdfast/api/holdfast/guest/v1/session_pb";
import { isSessionId, type SessionId, sessionArgsMaxBytes } from "@holdfast/contract";
import { AnsweredError } from "@holdfast/guest-link";
import { assertName, invalid } from "../execution/start-wish.ts";
import type { TerminalSize } from "../libc/terminal-calls.ts";

export type SessionKind = "terminal" | "detached";

/** A session that is to be opened, checked but for its directory. */
export interface SessionWish {
  readonly id: SessionId;
  readonly kind: SessionKind;
  /** "": the shell. */
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly size: TerminalSize;
  readonly login: boolean;
  readonly clientBound: boolean;
  /** Of the exclusive attachment that its opener has reserved. "": none. */
  readonly attachmentId: string;
}

const sizeDefault: TerminalSize = { columns: 80, rows: 24 };
const sizeMax = 65_535;
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Checks what came over the wire. */
export function parseOpen(request: OpenSessionRequest): SessionWish {
  const id = parseSessionId(request.sessionId);
  const { command, args, cwd, env, login, clientBound, attachmentId } = request;
  const kind = parseKind(request.kind);
  if (kind === "detached") {
    if (command === "") throw invalid("command", "must not be empty: a detached program is not a shell");
    if (request.size) throw invalid("size", "is a terminal's, and a detached program has none");
    if (clientBound) throw invalid("client_bound", "is a terminal's: a detached program has no client");
  }
  assertName(command);
  assertListable(args);
  if (login && command !== "") throw invalid("login", "is the shell's: leave the command out");
  if (command === "" && args.length > 0) throw invalid("args", "need a command");
  for (const [at, text] of [command, ...args].entries()) {
    if (text.includes("\0")) throw invalid(at === 0 ? "command" : `args[${at - 1}]`, "must not contain NUL");
  }
  for (const [name, value] of Object.entries(env)) {
    if (name === "" || /[=\0]/.test(name)) throw invalid("env", `has no usable name in ${JSON.stringify(name)}`);
    if (value.includes("\0")) throw invalid(`env[${name}]`, "must not contain NUL");
  }
  if (cwd.includes("\0")) throw invalid("cwd", "must not contain NUL");
  if (attachmentId !== "" && !uuid.test(attachmentId)) throw invalid("attachment_id", "must be a UUID, or empty");
  const size = parseSize(request.size) ?? sizeDefault;
  return { id, kind, command, args, cwd, env, size, login, clientBound, attachmentId };
}

/** What an argument costs in a list beside its bytes. */
const argCostBytes = 4;

function assertListable(args: readonly string[]): void {
  const bytes = args.reduce((sum, arg) => sum + Buffer.byteLength(arg) + argCostBytes, 0);
  if (bytes <= sessionArgsMaxBytes) return;
  throw new AnsweredError(
    "INVALID_REQUEST",
    `Nothing was started: args take ${bytes} bytes, and those of a session at most ${sessionArgsMaxBytes} (sessionArgsMaxBytes). Pass what is long as a file or input.`,
    { field: "args", bytes: String(bytes), limit: String(sessionArgsMaxBytes), setting: "sessionArgsMaxBytes" },
  );
}

/** Refuses what cannot name a session. */
export function parseSessionId(text: string): SessionId {
  if (isSessionId(text)) return text;
  throw invalid("session_id", "must be 1 to 64 of letters, digits, '.', '_' and '-'");
}

/** Undefined where it is absent. */
export function parseSize(size: TerminalSize | undefined): TerminalSize | undefined {
  if (size === undefined) return undefined;
  for (const side of ["columns", "rows"] as const) {
    if (size[side] < 1 || size[side] > sizeMax) throw invalid(`size.${side}`, `must be 1 to ${sizeMax}`);
  }
  return { columns: size.columns, rows: size.rows };
}

function parseKind(kind: KindOnWire): SessionKind {
  if (kind === KindOnWire.TERMINAL) return "terminal";
  if (kind === KindOnWire.DETACHED) return "detached";
  throw invalid("kind", "must be TERMINAL or DETACHED");
}
