import { create, type DescField, type DescMessage, type Message } from "@bufbuild/protobuf";
import { DurationSchema } from "@bufbuild/protobuf/wkt";
import { ExecutionService } from "@holdfast/api/holdfast/v1/execution_pb";
import { FileService } from "@holdfast/api/holdfast/v1/file_pb";
import { InventoryService } from "@holdfast/api/holdfast/v1/inventory_pb";
import { PortService } from "@holdfast/api/holdfast/v1/port_pb";
import { ServerService } from "@holdfast/api/holdfast/v1/server_pb";
import { SessionService } from "@holdfast/api/holdfast/v1/session_pb";
import { WorkspaceService } from "@holdfast/api/holdfast/v1/workspace_pb";
import { hasReason } from "@holdfast/errors";
import { describe, expect, it } from "vitest";
import { assertValid } from "./request-validation.ts";

/** What a field takes and what it refuses, spelled out: at its limit, one above, one below. */
interface Limits {
  readonly takes: readonly unknown[];
  readonly refuses: readonly unknown[];
}

const text = (length: number): string => "x".repeat(length);
/** Two bytes each: tells limits in bytes from limits in characters. */
const wide = (length: number): string => "ü".repeat(length);
const bytes = (length: number): Uint8Array => new Uint8Array(length);
const time = (seconds: number, nanos = 0) => create(DurationSchema, { seconds: BigInt(seconds), nanos });
const pairs = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`K${at}`, ""]));
const items = (count: number) => Array.from({ length: count }, () => "");

const chosenId: Limits = { takes: ["", "aZ0._-", text(64)], refuses: [text(65), "a/b", "a b", "a\n", "ü"] };
const givenId: Limits = { takes: ["a", "aZ0._-", text(64)], refuses: ["", text(65), "a/b", "a b", "a\n"] };
const opaque64: Limits = { takes: ["", wide(64)], refuses: [text(65)] };
const signal: Limits = {
  takes: ["HUP", "SIGINT", "QUIT", "TERM", "SIGKILL", "USR1", "USR2", "WINCH", "CONT", "STOP"],
  refuses: ["", "TSTP", "9", "term", "SIG", "KILL\n", "SEGV"],
};
const startOrStop: Limits = {
  takes: [time(0, 1), time(3600)],
  refuses: [time(0), time(-1), time(0, -1), time(3600, 1), time(3601), time(1, -1), time(1, 1_000_000_000)],
};
const upToAMinute: Limits = {
  takes: [time(0), time(60)],
  refuses: [time(0, -1), time(60, 1), time(61), time(-60)],
};
const upToTenMinutes: Limits = { takes: [time(0, 1), time(600)], refuses: [time(0), time(-1), time(600, 1)] };
const unbounded: Limits = {
  takes: [time(0), time(0, 1), time(30 * 24 * 3600), time(315_576_000_000)],
  refuses: [time(-1), time(0, -1), time(315_576_000_001)],
};
const path: Limits = { takes: ["a", wide(2048), text(4096)], refuses: ["", wide(2049), text(4097), "a\0"] };
const pathOrRoot: Limits = { takes: ["", text(4096)], refuses: [text(4097), "\0"] };
const side: Limits = { takes: [1, 65_535], refuses: [0, 65_536] };
const permissions: Limits = { takes: [0, 0o7777], refuses: [0o10000] };
const token: Limits = { takes: ["", text(4096)], refuses: [text(4097)] };
const inputPiece: Limits = { takes: [bytes(0), bytes(65_536)], refuses: [bytes(65_537)] };
const oneMiB: Limits = { takes: [bytes(1_048_576)], refuses: [bytes(1_048_577)] };
const anyNumber: Limits = { takes: [0n, 2n ** 64n - 1n], refuses: [] };
const highest = (value: number): Limits => ({ takes: [0, value], refuses: [value + 1, -1] });

/** By `field`, or `Message.field` where one message has another rule. */
const limits: Readonly<Record<string, Limits>> = {
  workspace_id: {
    takes: ["a", "0", "a-b", text(54)],
    refuses: ["", text(55), "-a", "a-", "A", "a b", "a_b", "a.b", "ü", "a\n"],
  },
  template: { takes: ["", text(253)], refuses: [text(254)] },
  "OpenWorkspaceRequest.template": {
    takes: ["", "a.b-c", text(253)],
    refuses: [text(254), "A", "-a", "a.", "a_b"],
  },
  workspace_id_prefix: { takes: ["", text(54)], refuses: [text(55)] },
  create: highest(3),
  on_start_failure: highest(2),
  on_disconnect: highest(2),
  leftovers: highest(2),
  verb: highest(3),
  mode: highest(2),
  "WriteFileStart.mode": permissions,
  "MakeDirectoryRequest.mode": permissions,
  epoch: { takes: [0n, 2n ** 53n - 1n], refuses: [2n ** 53n, 2n ** 64n - 1n] },
  expected_sandbox_uid: opaque64,
  expected_boot_id: opaque64,
  hold_id: opaque64,
  attachment_id: opaque64,
  "WriteTerminalRequest.attachment_id": { takes: ["a", text(64)], refuses: ["", text(65)] },
  ready_timeout: startOrStop,
  stop_timeout: startOrStop,
  hold: upToTenMinutes,
  timeout: unbounded,
  "FlushWish.timeout": upToTenMinutes,
  "FlushWorkspaceRequest.timeout": upToTenMinutes,
  "QuiesceWish.grace": {
    takes: [time(0), time(4, 999_000_000)],
    refuses: [time(0, -1), time(4, 999_000_001), time(5)],
  },
  "CancelExecutionRequest.grace": upToAMinute,
  drain: upToAMinute,
  wait: upToAMinute,
  cursor: { takes: ["", text(256)], refuses: [text(257)] },
  page_token: token,
  bookmark: token,
  page_size: { takes: [0, 1, 1000], refuses: [1001] },
  mode_changed_before: {
    takes: [
      { seconds: 0n, nanos: 0 },
      { seconds: 253_402_300_799n, nanos: 999_999_999 },
    ],
    refuses: [
      { seconds: 253_402_300_800n, nanos: 0 },
      { seconds: 0n, nanos: -1 },
      { seconds: 0n, nanos: 1_000_000_000 },
    ],
  },
  execution_id: givenId,
  "ExecuteRequest.execution_id": chosenId,
  "RunCommandRequest.execution_id": chosenId,
  session_id: givenId,
  "OpenTerminalRequest.session_id": chosenId,
  "StartDetachedRequest.session_id": chosenId,
  "TerminalStart.session_id": chosenId,
  command: { takes: ["a", wide(2048), text(4096)], refuses: ["", text(4097), wide(2049), "a\0"] },
  "TerminalProgram.command": { takes: ["", text(4096)], refuses: [text(4097), "a\0"] },
  args: {
    takes: [[], items(4096), [text(131_071)]],
    refuses: [items(4097), [text(131_072)], [wide(65_536)], ["", "a\0"]],
  },
  env: {
    takes: [{}, pairs(1024), { [text(256)]: text(131_071) }, { _a1: "" }],
    refuses: [
      pairs(1025),
      { [text(257)]: "" },
      { A: text(131_072) },
      { A: "\0" },
      { "1a": "" },
      { "": "" },
      { "a=b": "" },
    ],
  },
  cwd: pathOrRoot,
  stdin: { takes: [bytes(0), bytes(3_145_728)], refuses: [bytes(3_145_729)] },
  "ExecuteInteractiveRequest.stdin": inputPiece,
  input: inputPiece,
  signal,
  "KillSessionRequest.signal": { takes: ["", ...signal.takes], refuses: signal.refuses.slice(1) },
  max_output: anyNumber,
  "RunCommandRequest.max_output": { takes: [0, 1, 1_048_576], refuses: [1_048_577] },
  columns: side,
  rows: side,
  sequence: { takes: [1n, 2n ** 64n - 1n], refuses: [0n] },
  "WriteTerminalRequest.data": inputPiece,
  "ConnectRequest.data": inputPiece,
  "WriteFileRequest.data": oneMiB,
  "PutFileRequest.data": oneMiB,
  max_bytes: { takes: [0, 1, 1_048_576], refuses: [1_048_577] },
  path,
  from: path,
  to: path,
  "ListDirectoryRequest.path": pathOrRoot,
  "WalkFilesRequest.path": pathOrRoot,
  "WatchDirectoryRequest.path": pathOrRoot,
  glob: pathOrRoot,
  if_unchanged: { takes: ["", text(128)], refuses: [text(129)] },
  max_visited: { takes: [0n, 1n, 1_000_000n], refuses: [1_000_001n] },
  port: { takes: [1, 65_535], refuses: [0, 65_536] },
  host: { takes: ["", "127.0.0.1", "::1"], refuses: ["localhost", "0.0.0.0", "127.0.0.2", "127x0x0x1", "::", "::1\n"] },
  from_offset: anyNumber,
  offset: anyNumber,
  length: anyNumber,
  "WriteFileStart.size": anyNumber,
  max_depth: { takes: [0, 2 ** 32 - 1], refuses: [] },
  max_entries: anyNumber,
};

/** What else a request must have so that nothing but the field in question can be wrong. */
const base = {
  workspaceId: "w",
  command: "c",
  executionId: "e",
  sessionId: "s",
  attachmentId: "a",
  sequence: 1n,
  signal: "TERM",
  path: "p",
  from: "f",
  to: "t",
  port: 1,
  columns: 1,
  rows: 1,
};
const required: Readonly<Record<string, object>> = {
  "ResizeTerminalRequest.size": { columns: 1, rows: 1 },
  "PutFileRequest.start": base,
};

const services = [
  WorkspaceService,
  ExecutionService,
  SessionService,
  FileService,
  PortService,
  InventoryService,
  ServerService,
];

/** Every message of ours that a request is or contains. */
function requestMessages(): DescMessage[] {
  const found = new Set<DescMessage>();
  const take = (message: DescMessage): void => {
    if (found.has(message) || message.typeName.startsWith("google.")) return;
    found.add(message);
    for (const { message: within } of message.fields) if (within) take(within);
  };
  for (const { methods } of services) for (const { input } of methods) take(input);
  return [...found];
}

const isOurs = ({ message }: DescField): boolean => message !== undefined && !message.typeName.startsWith("google.");
const isFlag = ({ fieldKind, ...field }: DescField): boolean =>
  fieldKind === "scalar" && "scalar" in field && field.scalar === 8;
const nameOf = ({ parent, name }: DescField): string => `${parent.name}.${name}`;
const limitsOf = (field: DescField): Limits | undefined => limits[nameOf(field)] ?? limits[field.name];

/** A message that is right but, perhaps, in this field. */
function requestWith(schema: DescMessage, field: DescField, value: unknown): Message {
  const init: Record<string, unknown> = {};
  for (const { localName, name, oneof } of schema.fields) {
    if (oneof) continue;
    if (localName in base) init[localName] = base[localName as keyof typeof base];
    const needed = required[`${schema.name}.${name}`];
    if (needed) init[localName] = needed;
  }
  if (field.oneof) init[field.oneof.localName] = { case: field.localName, value };
  else init[field.localName] = value;
  return create(schema, init as never);
}

function refusalOf(schema: DescMessage, request: Message): readonly string[] {
  try {
    assertValid(schema, request);
    return [];
  } catch (error) {
    if (!hasReason(error, "INVALID_REQUEST")) throw error;
    return error.violations.map((violation) => violation.field);
  }
}

const fields = requestMessages().flatMap((message) =>
  message.fields.filter((field) => !isOurs(field) && !isFlag(field)),
);

describe("the limits of every field of every request", () => {
  it("are all spelled out here", () => {
    expect(fields.filter((field) => limitsOf(field) === undefined).map(nameOf)).toEqual([]);
    const used = new Set(fields.flatMap((field) => [nameOf(field), field.name]));
    expect(Object.keys(limits).filter((name) => !used.has(name))).toEqual([]);
  });

  it.each(fields.map((field) => [nameOf(field), field] as const))("%s takes and refuses what it says", (_, field) => {
    const { takes, refuses } = limitsOf(field) ?? { takes: [], refuses: [] };
    for (const value of takes) {
      expect(refusalOf(field.parent, requestWith(field.parent, field, value))).toEqual([]);
    }
    for (const value of refuses) {
      const violations = refusalOf(field.parent, requestWith(field.parent, field, value));
      expect(violations.length, `${nameOf(field)} took ${String(value).slice(0, 40)}`).toBeGreaterThan(0);
      for (const violated of violations) expect(violated.split(/[.[]/)[0]).toBe(field.name);
    }
  });

  it("hold inside the messages of a request, and of the first request of a stream", () => {
    const within = (schema: DescMessage, init: object) => refusalOf(schema, create(schema, init as never));
    const { suspendWorkspace } = WorkspaceService.method;
    const suspend = { workspaceId: "w", flush: { timeout: time(601) }, quiesce: { grace: time(5) } };
    expect(within(suspendWorkspace.input, suspend)).toEqual(["quiesce.grace", "flush.timeout"]);
    const start = { ...base, workspaceId: "W", size: { columns: 0, rows: 1 } };
    const terminal = within(SessionService.method.terminal.input, { request: { case: "start", value: start } });
    expect(terminal.toSorted()).toEqual(["start.size.columns", "start.workspace_id"]);
  });

  it("name what is missing: a request of a stream without content, a size, a start", () => {
    const empty = (schema: DescMessage, init: object = {}) => refusalOf(schema, create(schema, init as never));
    expect(empty(SessionService.method.terminal.input)).toEqual(["request"]);
    expect(empty(ExecutionService.method.executeInteractive.input)).toEqual(["request"]);
    expect(empty(FileService.method.writeFile.input)).toEqual(["part"]);
    expect(empty(PortService.method.connect.input)).toEqual(["request"]);
    expect(empty(FileService.method.putFile.input)).toEqual(["start"]);
    expect(empty(SessionService.method.resizeTerminal.input, base)).toEqual(["size"]);
  });
});
