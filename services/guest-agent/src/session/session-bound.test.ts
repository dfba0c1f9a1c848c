import { type ChildProcess, spawn } from "node:child_process";
import { constants, mkdirSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { OpenSessionRequestSchema, SessionKind } from "@holdfast/api/holdfast/guest/v1/session_pb";
import {
  attachmentKeptMs,
  isSessionId,
  linkMessageMaxBytes,
  pathMaxBytes,
  sessionArgsMaxBytes,
  sessionKeptMs,
  sessionsMax,
} from "@holdfast/contract";
import { HandClock } from "@holdfast/testkit";
import { describe, expect, it, onTestFinished } from "vitest";
import { Quiet } from "../disk/quiet.ts";
import { PathLooks } from "../execution/path-looks.ts";
import type { SessionCalls } from "./launch-session.ts";
import { SessionIds } from "./session-ids.ts";
import { anybody, type Opener, SessionTable } from "./session-table.ts";
import { parseOpen } from "./session-wish.ts";

/** A table on a clock of the test's. Programs are real, and their terminal is nobody's. */
function stage() {
  const clock = new HandClock();
  const children: ChildProcess[] = [];
  const asked = Promise.withResolvers<void>();
  const gate = { open: Promise.resolve(), asked: asked.promise };
  const calls: SessionCalls = {
    spawner: {
      async spawn({ command, args, env, cwd }) {
        asked.resolve();
        await gate.open;
        const child = spawn(command, [...args], { env: { ...env }, cwd, detached: true, stdio: "ignore" });
        children.push(child);
        const exited = new Promise<{ signal: NodeJS.Signals }>((resolve) =>
          child.once("exit", (_, signal) => resolve({ signal: signal ?? "SIGKILL" })),
        );
        return { pid: child.pid ?? 0, exited };
      },
    },
    pipes: { take: async () => [] },
    looks: new PathLooks(clock),
    terminals: {
      openPty: () => ({
        master: openSync("/dev/ptmx", constants.O_RDWR | constants.O_NOCTTY | constants.O_NONBLOCK),
        path: "/dev/null",
      }),
      resize: () => undefined,
      foregroundGroup: () => 0,
    },
  };
  const directory = mkdtempSync(join(tmpdir(), "holdfast-session-"));
  onTestFinished(() => {
    for (const child of children) child.kill("SIGKILL");
    rmSync(directory, { recursive: true, force: true });
  });
  const table = new SessionTable({
    root: { path: directory, real: directory },
    environment: { PATH: process.env.PATH ?? "" },
    clock,
    quiet: new Quiet(),
    ids: new SessionIds(directory, "boot"),
    calls,
  });
  const open = (sessionId: string, clientBound = true, cwd = "", opener: Opener = anybody) =>
    table.open(
      parseOpen(
        create(OpenSessionRequestSchema, {
          sessionId,
          kind: SessionKind.TERMINAL,
          command: "sleep",
          args: ["100"],
          clientBound,
          cwd,
        }),
      ),
      opener,
    );
  return { clock, table, open, directory, gate };
}

const stream = { end: () => undefined };
const exclusive = { mode: "exclusive", attachmentId: "", stream, whileHeld: () => () => undefined } as const;

describe("a program that is bound to its client", () => {
  it("G17 ends 60 s after nobody attends to it, and not while somebody does", async () => {
    const { clock, open } = stage();
    const session = await open("s");
    clock.pass(attachmentKeptMs - 1);
    const attachment = session.attachments.take(exclusive);
    clock.pass(10 * attachmentKeptMs);
    expect(session.exit).toBeUndefined();
    session.attachments.leave(attachment, stream, false);
    clock.pass(attachmentKeptMs - 1);
    const again = session.attachments.take({ ...exclusive, attachmentId: attachment.id });
    clock.pass(10 * attachmentKeptMs);
    expect(session.exit).toBeUndefined();
    session.attachments.leave(again, stream, false);
    clock.pass(attachmentKeptMs);
    await session.ended;
    expect(session.exit).toMatchObject({ status: { signal: "SIGKILL" } });
  });

  it("G17 ends 60 s after its start when nobody ever came; one that is bound to nobody goes on", async () => {
    const { clock, open } = stage();
    const [bound, free] = [await open("bound"), await open("free", false)];
    clock.pass(attachmentKeptMs);
    await bound.ended;
    expect(free.exit).toBeUndefined();
  });
});

describe("the attachment that a session's opener has reserved", () => {
  const id = "7b0c3c0e-6a1f-4c54-9a0e-2f4f4f1f0a01";
  const opener: Opener = {
    admit: () => undefined,
    reservation: { attachmentId: id, whileHeld: () => () => undefined },
  };

  it("G17 is let go for good while the program is being opened: that is ended as soon as it runs, and not after 60 s", async () => {
    const { table, open, gate } = stage();
    const begin = Promise.withResolvers<void>();
    gate.open = begin.promise;
    const opening = open("s", true, "", opener);
    await gate.asked;
    const [session] = table.running;
    expect(session?.attachments.detach(id, true)).toBe("exclusive");
    begin.resolve();
    await opening;
    await session?.ended; // The clock is the test's, and stands.
    expect(table.running).toEqual([]);
  });

  it("G19 is kept for 60 s from the program's begin on, displaced by a newer one, and taken by its id", async () => {
    const { clock, open } = stage();
    const session = await open("s", false, "", opener);
    clock.pass(attachmentKeptMs - 1);
    const mine = session.attachments.take({ ...exclusive, attachmentId: id });
    expect(mine.id).toBe(id);
    session.attachments.take(exclusive);
    expect(() => session.attachments.take({ ...exclusive, attachmentId: id })).toThrow(
      expect.objectContaining({ reason: "ATTACHMENT_DISPLACED" }),
    );
    const other = await open("other", false, "", opener);
    clock.pass(attachmentKeptMs);
    expect(() => other.attachments.detach(id, true)).toThrow(
      expect.objectContaining({ reason: "ATTACHMENT_NOT_FOUND" }),
    );
  });
});

describe("the record of a session", () => {
  it("G16 fits one list with all others, whatever their arguments", () => {
    const wishOf = (bytes: number) =>
      create(OpenSessionRequestSchema, {
        sessionId: "s",
        kind: SessionKind.TERMINAL,
        command: "true",
        args: ["\u00fc".repeat(bytes / 2 - 2)],
      });
    expect(parseOpen(wishOf(sessionArgsMaxBytes)).args).toHaveLength(1);
    expect(() => parseOpen(wishOf(sessionArgsMaxBytes + 2))).toThrow(
      expect.objectContaining({
        reason: "INVALID_REQUEST",
        metadata: expect.objectContaining({ setting: "sessionArgsMaxBytes" }),
      }),
    );
    const restOfRowBytes = 2 * pathMaxBytes + 1_024; // The program's name, and once more where it could not be started.
    expect(sessionsMax * (sessionArgsMaxBytes + restOfRowBytes)).toBeLessThan(linkMessageMaxBytes);
  });

  it("G16 is kept 10 min after the end, then its id is forgotten", async () => {
    const { clock, open, table, directory } = stage();
    const session = await open("s");
    process.kill(session.pid, "SIGKILL");
    await session.ended;
    await new Promise((resolve) => setImmediate(resolve));
    clock.pass(sessionKeptMs - 1);
    expect(table.require(session.wish.id)).toBe(session);
    expect(lostIn(directory)).toBe("boot");
    clock.pass(1);
    expect(() => table.require(session.wish.id)).toThrow(expect.objectContaining({ reason: "SESSION_NOT_FOUND" }));
    expect(lostIn(directory)).toBeUndefined();
    expect(clock.pending).toBe(0);
  });

  it("G16 leaves nothing behind when its id is taken again before that", async () => {
    const { clock, open, table } = stage();
    for (let times = 0; times < 3; times += 1) {
      const session = await open("s", false);
      process.kill(session.pid, "SIGKILL");
      await session.ended;
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(table.all).toHaveLength(1);
    expect(clock.pending).toBe(1); // Of the last one.
  });

  it("B32 that expires while its id is opened anew leaves the new one known to the next agent process", async () => {
    const { clock, open, directory, gate } = stage();
    const former = await open("s");
    process.kill(former.pid, "SIGKILL");
    await former.ended;
    await new Promise((resolve) => setImmediate(resolve));
    const begin = Promise.withResolvers<void>();
    gate.open = begin.promise;
    const opening = open("s");
    clock.pass(sessionKeptMs);
    expect(lostIn(directory)).toBe("boot"); // What is being started may run already.
    begin.resolve();
    const session = await opening;
    expect(session.exit).toBeUndefined();
    expect(lostIn(directory)).toBe("boot");
  });

  it("G16 that expires while the new start of its id comes to nothing leaves no id behind", async () => {
    const { clock, open, directory, gate } = stage();
    const former = await open("s");
    process.kill(former.pid, "SIGKILL");
    await former.ended;
    await new Promise((resolve) => setImmediate(resolve));
    const begin = Promise.withResolvers<void>();
    gate.open = begin.promise;
    const opening = open("s");
    clock.pass(sessionKeptMs);
    begin.reject(Object.assign(new Error("no more processes"), { code: "EAGAIN" }));
    await expect(opening).rejects.toMatchObject({ reason: "SESSION_CAPACITY" });
    expect(lostIn(directory)).toBeUndefined();
  });

  it("G16 that expires while the directory of a new start is looked at, and is none, leaves no id behind", async () => {
    const { clock, open, directory } = stage();
    const former = await open("s");
    process.kill(former.pid, "SIGKILL");
    await former.ended;
    await new Promise((resolve) => setImmediate(resolve));
    const opening = open("s", false, "missing");
    clock.pass(sessionKeptMs);
    await expect(opening).rejects.toMatchObject({ metadata: { field: "cwd" } });
    expect(lostIn(directory)).toBeUndefined();
  });

  it("G16 whose directory goes while it is being opened is refused by that, not told as a program that is missing", async () => {
    const { open, table, directory, gate } = stage();
    mkdirSync(join(directory, "sub"));
    const begin = Promise.withResolvers<void>();
    gate.open = begin.promise;
    const opening = open("s", false, "sub");
    await gate.asked; // It has been looked at, and is there.
    rmSync(join(directory, "sub"), { recursive: true });
    begin.reject(Object.assign(new Error("no such file or directory"), { code: "ENOENT" }));
    await expect(opening).rejects.toMatchObject({ reason: "INVALID_REQUEST", metadata: { field: "cwd" } });
    expect(table.all).toEqual([]);
    expect(lostIn(directory)).toBeUndefined();
  });

  it("B32 a session is not started when its id cannot be kept", async () => {
    const { open, table, directory } = stage();
    rmSync(join(directory, "sessions"), { recursive: true });
    await expect(open("s")).rejects.toMatchObject({ reason: "INTERNAL_ERROR", metadata: { errno: "ENOENT" } });
    expect(table.all).toEqual([]);
  });
});

/** What another agent process would find of session "s". */
function lostIn(directory: string): string | undefined {
  const id = "s";
  if (!isSessionId(id)) throw new Error(id);
  return new SessionIds(directory, "another").lostWith(id);
}
