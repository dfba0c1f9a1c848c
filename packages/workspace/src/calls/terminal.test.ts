import { type Deadline, orAborted } from "@holdfast/async";
import type { SessionId } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import { collect, FakeSessions, openWish, patient, stage, workspaceId } from "@holdfast/testkit";
import { describe, expect, it } from "vitest";
import type { Guest } from "../ports/guest.ts";
import type { AttachSessionWish, OpenedSession, OpenSessionWish, SessionEvent } from "../ports/sessions.ts";
import { Workspace } from "../workspace.ts";
import { Terminal, type TerminalVerb } from "./terminal.ts";

const sessionId = "t" as SessionId;
const everything = ["executions", "files", "probe", "sessions"];

/** A guest's sessions, of which the test says when a program is begun and when an attachment is. */
class Opening extends FakeSessions {
  readonly asked = Promise.withResolvers<OpenSessionWish>();
  readonly begun = Promise.withResolvers<void>();
  readonly attaching = Promise.withResolvers<AttachSessionWish>();
  readonly letGo: unknown[] = [];
  isOld = false;

  override async open(wish: OpenSessionWish, within?: Deadline): Promise<OpenedSession> {
    this.asked.resolve(wish);
    await (within ? orAborted(this.begun.promise, within.signal) : this.begun.promise);
    const { kind, command, args, size, clientBound, attachmentId } = wish;
    const at = { startedAtMs: 0, lastInputAtMs: undefined, lastOutputAtMs: undefined, nextOffset: 0, droppedBytes: 0 };
    const row = { sessionId, kind, command, args, size, clientBound, ...at, exit: undefined, attached: false, pid: 7 };
    return { ...row, bootId: undefined, attachmentId: this.isOld ? undefined : attachmentId };
  }

  override async *attach(wish: AttachSessionWish, signal?: AbortSignal): AsyncGenerator<SessionEvent> {
    this.attaching.resolve(wish);
    yield await new Promise<never>((_, reject) => {
      signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
  }

  override async detach(wish: object): Promise<void> {
    this.letGo.push(wish);
  }
}

async function terminalOf(sessions: Opening, clientBound = true, verb: TerminalVerb = "open") {
  const on = stage();
  on.guests.shape = (script) => {
    const { health } = script;
    script.health = async (within) => ({ ...(await health(within)), features: everything });
  };
  const withSessions = (guest: Guest): Guest => {
    const under = guest.under.bind(guest);
    return Object.assign(guest, {
      sessions,
      under: (epoch: Parameters<typeof under>[0]) => withSessions(under(epoch)),
    });
  };
  const guests: typeof on.deps.guests = { guest: (address) => withSessions(on.guests.guest(address)) };
  const workspace = new Workspace(workspaceId("demo"), { ...on.deps, guests });
  await workspace.open(openWish, patient);
  const program = {
    sessionId,
    kind: "terminal",
    command: "sh",
    args: [],
    cwd: undefined,
    env: {},
    size: undefined,
  } as const;
  const attach = { sessionId, fromOffset: 0, mode: "exclusive", size: undefined, attachmentId: undefined } as const;
  const expectedBootId = undefined;
  const client = new AbortController();
  const wish = {
    verb,
    program: { ...program, login: false, clientBound, expectedBootId },
    attach: { ...attach, expectedBootId },
  };
  const call = new Terminal(wish, (async function* () {})());
  const run = () =>
    collect(workspace.sessionsUnder(undefined, "Terminal").terminal(call, client.signal)).catch(
      (error: unknown) => error,
    );
  return { client, over: run(), again: run };
}

describe("L44 a client that goes while its terminal is being opened", () => {
  it("has what was reserved for it let go, before the open is answered", async () => {
    const sessions = new Opening();
    const { client, over } = await terminalOf(sessions);
    const { attachmentId } = await sessions.asked.promise;
    client.abort(new Error("gone"));
    await over;
    expect(attachmentId).toBeDefined();
    expect(sessions.letGo).toEqual([{ sessionId, attachmentId, clientClosed: true }]);
  });

  it("has it let go after that as well, until it is attached: by the very id under which it attaches", async () => {
    const sessions = new Opening();
    const { client, over } = await terminalOf(sessions);
    const { attachmentId } = await sessions.asked.promise;
    sessions.begun.resolve();
    expect((await sessions.attaching.promise).attachmentId).toBe(attachmentId);
    client.abort(new Error("gone"));
    await over;
    expect(sessions.letGo).toEqual([{ sessionId, attachmentId, clientClosed: true }]);
  });

  it("leaves alone what is bound to nobody, and what an older guest opened", async () => {
    const free = new Opening();
    const persistent = await terminalOf(free, false);
    expect((await free.asked.promise).attachmentId).toBeUndefined();
    persistent.client.abort(new Error("gone"));
    await persistent.over;
    const old = Object.assign(new Opening(), { isOld: true });
    const bound = await terminalOf(old);
    old.begun.resolve();
    expect((await old.attaching.promise).attachmentId).toBeUndefined();
    bound.client.abort(new Error("gone"));
    await bound.over;
    expect([free.letGo, old.letGo]).toEqual([[], []]);
  });
});

describe("a terminal that is begun again on another handle", () => {
  it("attaches to what somebody else has opened meanwhile as anybody does, not by an id that was reserved nowhere", async () => {
    const wishes: AttachSessionWish[] = [];
    const sessions = Object.assign(new Opening(), {
      async open(): Promise<OpenedSession> {
        throw new HoldfastError("SESSION_CAPACITY", { message: "Nothing was started." });
      },
      async *attach(wish: AttachSessionWish): AsyncGenerator<SessionEvent> {
        wishes.push(wish);
        throw new HoldfastError("SESSION_NOT_FOUND", { message: "None of this id." });
      },
    });
    const { over, again } = await terminalOf(sessions, true, "open_or_attach");
    expect(await over).toMatchObject({ reason: "SESSION_CAPACITY" });
    await again();
    expect(wishes.map(({ attachmentId }) => attachmentId)).toEqual([undefined, undefined]);
  });
});
