import { create } from "@bufbuild/protobuf";
import {
  AttachMode,
  AttachTerminalRequestSchema,
  OpenTerminalRequestSchema,
  ReadSessionRequestSchema,
  StartDetachedRequestSchema,
  TerminalRequestSchema,
  TerminalStartSchema,
  TerminalVerb,
} from "@holdfast/api/holdfast/v1/session_pb";
import { describe, expect, it } from "vitest";
import {
  parseAttach,
  parseOpenTerminal,
  parseReadSession,
  parseSequence,
  parseStartDetached,
  parseTerminalInput,
  parseTerminalStart,
} from "./parse-session.ts";

const minted = expect.stringMatching(/^[0-9a-f-]{36}$/);
const beyond = 2n ** 64n - 1n;
const startOf = (init: object = {}) => parseTerminalStart(create(TerminalStartSchema, init as never));
const refusing = (...fields: string[]) =>
  expect.objectContaining({
    reason: "INVALID_REQUEST",
    violations: fields.map((field) => expect.objectContaining({ field })),
  });

describe("what a session's call asks for when it does not say", () => {
  it("OpenTerminal: the shell, not as a login shell, at the root, of the guest's own size, under a minted id", () => {
    expect(parseOpenTerminal(create(OpenTerminalRequestSchema, {}))).toEqual({
      sessionId: minted,
      kind: "terminal",
      command: "",
      args: [],
      cwd: undefined,
      env: {},
      size: undefined,
      login: false,
      clientBound: false,
      expectedBootId: undefined,
    });
  });

  it("StartDetached: the same of a program without a terminal", () => {
    expect(parseStartDetached(create(StartDetachedRequestSchema, { command: "make" }))).toMatchObject({
      sessionId: minted,
      kind: "detached",
      command: "make",
      cwd: undefined,
      clientBound: false,
      expectedBootId: undefined,
    });
  });

  it("AttachTerminal: a new EXCLUSIVE attachment from the beginning, to whichever agent process", () => {
    expect(parseAttach(create(AttachTerminalRequestSchema, { sessionId: "s" }))).toEqual({
      sessionId: "s",
      fromOffset: 0,
      mode: "exclusive",
      size: undefined,
      attachmentId: undefined,
      expectedBootId: undefined,
    });
  });

  it("ReadSession: from the beginning, as much as the guest gives unasked, without waiting", () => {
    expect(parseReadSession(create(ReadSessionRequestSchema, { sessionId: "s" }))).toEqual({
      sessionId: "s",
      fromOffset: 0,
      maxBytes: undefined,
      waitMs: 0,
    });
    const wait = { seconds: 60n, nanos: 0 };
    const asked = create(ReadSessionRequestSchema, { sessionId: "s", fromOffset: 7n, maxBytes: 1, wait });
    expect(parseReadSession(asked)).toEqual({ sessionId: "s", fromOffset: 7, maxBytes: 1, waitMs: 60_000 });
  });

  it("Terminal: OPEN_OR_ATTACH of an id, OPEN without one, of a program that outlives its client", () => {
    expect(startOf({ sessionId: "s" })).toMatchObject({ verb: "open_or_attach", program: { clientBound: false } });
    const unnamed = startOf();
    expect(unnamed).toMatchObject({ verb: "open", program: { sessionId: minted, clientBound: false } });
    expect(unnamed.attach.sessionId).toBe(unnamed.program.sessionId);
    expect(startOf({ persistent: true }).program.clientBound).toBe(false);
    expect(startOf({ persistent: false }).program.clientBound).toBe(true);
  });
});

describe("what a session's call asks for", () => {
  it.each([
    [TerminalVerb.UNSPECIFIED, "open_or_attach"],
    [TerminalVerb.OPEN, "open"],
    [TerminalVerb.ATTACH, "attach"],
    [TerminalVerb.OPEN_OR_ATTACH, "open_or_attach"],
  ] as const)("the verb %i is %s", (wire, verb) => {
    expect(startOf({ sessionId: "s", verb: wire }).verb).toBe(verb);
  });

  it.each([
    [AttachMode.UNSPECIFIED, "exclusive"],
    [AttachMode.EXCLUSIVE, "exclusive"],
    [AttachMode.OBSERVE, "observe"],
  ] as const)("the mode %i is %s", (wire, mode) => {
    expect(parseAttach(create(AttachTerminalRequestSchema, { sessionId: "s", mode: wire })).mode).toBe(mode);
  });

  it("the size of the stream comes before the program's", () => {
    const program = { size: { columns: 1, rows: 2 } };
    expect(startOf({ program }).program.size).toEqual({ columns: 1, rows: 2 });
    expect(startOf({ program, size: { columns: 3, rows: 4 } }).program.size).toEqual({ columns: 3, rows: 4 });
  });

  it("an offset beyond exact numbers is beyond any output; such a sequence was never told", () => {
    const attach = create(AttachTerminalRequestSchema, { sessionId: "s", fromOffset: beyond });
    expect(parseAttach(attach).fromOffset).toBe(Number.MAX_SAFE_INTEGER);
    expect(parseSequence(2n ** 53n - 1n)).toBe(Number.MAX_SAFE_INTEGER);
    expect(() => parseSequence(2n ** 53n)).toThrow(refusing("sequence"));
  });

  it("a second start is refused by name", () => {
    const again = create(TerminalRequestSchema, { request: { case: "start", value: { workspaceId: "w" } } });
    expect(() => parseTerminalInput(again)).toThrow(refusing("start"));
  });
});

describe("what cannot be meant together", () => {
  const size = { columns: 1, rows: 1 };
  const { ATTACH, OPEN } = TerminalVerb;
  const { OBSERVE } = AttachMode;

  it.each([
    [{ verb: ATTACH }, ["start.session_id"]],
    [{ verb: ATTACH, sessionId: "s", program: {} }, ["start.program"]],
    [{ verb: ATTACH, sessionId: "s", persistent: false }, ["start.persistent"]],
    [{ verb: OPEN, sessionId: "s", fromOffset: 1n }, ["start.from_offset"]],
    [{ verb: OPEN, sessionId: "s", attachmentId: "a" }, ["start.attachment_id"]],
    [{ fromOffset: 1n, attachmentId: "a" }, ["start.from_offset", "start.attachment_id"]],
    [{ verb: OPEN, sessionId: "s", mode: OBSERVE }, ["start.mode"]],
    [{ sessionId: "s", mode: OBSERVE }, ["start.mode"]],
    [{ verb: ATTACH, sessionId: "s", mode: OBSERVE, size }, ["start.size"]],
    [{ verb: ATTACH, mode: OBSERVE, size, program: {} }, ["start.session_id", "start.program", "start.size"]],
  ] as const)("%o is refused by %j, all of it at once", (init, fields) => {
    expect(() => startOf(init)).toThrow(refusing(...fields));
  });

  it.each([
    { verb: ATTACH, sessionId: "s", mode: OBSERVE, fromOffset: 1n },
    { verb: ATTACH, sessionId: "s", size, attachmentId: "a", persistent: true },
    { verb: OPEN, program: {}, persistent: false, size },
    { sessionId: "s", fromOffset: 1n, attachmentId: "a", program: {}, persistent: false },
  ] as const)("%o is not", (init) => {
    expect(() => startOf(init)).not.toThrow();
  });

  it("an observer's size is refused on AttachTerminal, under the name that the field has there", () => {
    const request = create(AttachTerminalRequestSchema, { sessionId: "s", mode: OBSERVE, size });
    expect(() => parseAttach(request)).toThrow(refusing("size"));
  });
});
