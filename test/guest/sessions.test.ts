import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { Deadline, systemClock } from "@holdfast/async";
import { isSessionId, reattachWindowMs, type SessionId } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import { ManualClock } from "@holdfast/testkit";
import {
  type AttachSessionWish,
  type Guest,
  GuestLost,
  LeaveRunning,
  type OpenSessionWish,
  type SessionEvent,
} from "@holdfast/workspace";
import { describe, expect, it, onTestFinished } from "vitest";
import { faultProxy } from "./fault-proxy.ts";
import { clientOf, guestProcess } from "./guest-process.ts";

const soon = (ms = 15_000): Deadline => new Deadline(systemClock, ms);
const never = new AbortController().signal;

function idOf(text: string): SessionId {
  if (!isSessionId(text)) throw new Error(text);
  return text;
}

const scriptOf = (id: string, text: string, more: Partial<OpenSessionWish> = {}): OpenSessionWish => ({
  sessionId: idOf(id),
  kind: "terminal",
  command: "sh",
  args: ["-c", text],
  cwd: undefined,
  env: {},
  size: undefined,
  login: false,
  clientBound: false,
  expectedBootId: undefined,
  ...more,
});

const attachTo = (id: string, more: Partial<AttachSessionWish> = {}): AttachSessionWish => ({
  sessionId: idOf(id),
  fromOffset: 0,
  mode: "exclusive",
  size: undefined,
  attachmentId: undefined,
  expectedBootId: undefined,
  ...more,
});

/** Reads an attachment in the background, and checks that it is one unbroken sequence. */
class Reader {
  readonly events: SessionEvent[] = [];
  text = "";
  position: number;
  /** Undefined: it ended in order. */
  readonly over: Promise<unknown>;
  readonly #waiting = new Set<() => void>();

  constructor(guest: Guest, wish: AttachSessionWish, signal = never) {
    this.position = wish.fromOffset;
    this.over = this.#read(guest.sessions.attach(wish, signal)).then(
      () => undefined,
      (error) => error,
    );
    void this.over.then(() => this.#wake());
  }

  get attached(): Extract<SessionEvent, { t: "attached" }> {
    const [first] = this.events;
    if (first?.t !== "attached") throw new Error("not attached");
    return first;
  }

  async until(holds: () => boolean): Promise<void> {
    while (!holds()) await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  async #read(events: AsyncIterable<SessionEvent>): Promise<void> {
    for await (const event of events) {
      if (event.t === "output") {
        expect(event.offset).toBe(this.position);
        this.position += event.data.length;
        this.text += Buffer.from(event.data).toString("latin1");
      } else if (event.t === "gap") {
        expect(event.from).toBe(this.position);
        this.position = event.to;
      }
      this.events.push(event);
      this.#wake();
    }
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }
}

describe("a session, followed", () => {
  it("opens, types, resizes, signals, reads, lists and ends", async () => {
    const guest = clientOf((await guestProcess()).address);
    const opened = await guest.sessions.open(
      scriptOf("s", "stty -echo; echo up; while read -r x; do echo got:$x; done"),
      soon(),
    );
    expect(opened).toMatchObject({
      sessionId: "s",
      kind: "terminal",
      exit: undefined,
      size: { columns: 80, rows: 24 },
    });
    const reader = new Reader(guest, attachTo("s"));
    await reader.until(() => reader.text.includes("up"));
    const { attachmentId, nextInputSequence } = reader.attached;
    const sessionId = idOf("s");
    expect(nextInputSequence).toBe(1);
    const data = Buffer.from("hello\n");
    expect(await guest.sessions.write({ sessionId, attachmentId, sequence: 1, data }, soon())).toEqual({
      nextSequence: 2,
    });
    await reader.until(() => reader.text.includes("got:hello"));
    await guest.sessions.resize({ sessionId, size: { columns: 5, rows: 6 }, attachmentId }, soon());
    const { sessions, bootId } = await guest.sessions.list(soon());
    expect(sessions).toMatchObject([{ sessionId, attached: true, size: { columns: 5, rows: 6 } }]);
    expect(bootId).toBe(reader.attached.bootId);
    const chunk = await guest.sessions.read({ sessionId, fromOffset: 0, maxBytes: 2, waitMs: 0 }, soon());
    expect(chunk).toMatchObject({ offset: 0, nextOffset: 2, data: Buffer.from("up") });
    expect(guest.sessions.liveAttachments).toBe(1);
    await guest.sessions.signal({ sessionId, signal: "KILL", attachmentId: undefined }, soon());
    expect(await reader.over).toBeUndefined();
    expect(reader.events.at(-1)).toMatchObject({ t: "exited", exit: { status: { t: "signal", signal: "SIGKILL" } } });
    expect((await guest.sessions.kill({ sessionId, signal: "" }, soon())).exit).toBeDefined();
    expect(guest.sessions.liveAttachments).toBe(0);
  });

  it("B27 L44 is taken up again over cut links: no byte twice, none missing, input once, one attachment", async () => {
    const proxy = await faultProxy((await guestProcess()).address);
    const guest = clientOf(proxy.address);
    await guest.sessions.open(
      scriptOf("s", "stty -echo; echo up; i=0; while read -r x; do i=$((i+1)); echo $i:$x; done"),
      soon(),
    );
    const reader = new Reader(guest, attachTo("s"));
    await reader.until(() => reader.text === "up\r\n");
    const { attachmentId } = reader.attached;
    const sessionId = idOf("s");
    const lines = 40;
    for (let sequence = 1; sequence <= lines; sequence += 1) {
      const writing = guest.sessions.write(
        { sessionId, attachmentId, sequence, data: Buffer.from(`l${sequence}\n`) },
        soon(),
      );
      if (sequence % 4 === 0) proxy.cut();
      // A dial in the very moment of the cut proves that nothing was sent; the caller may just send it again.
      await writing.catch(() =>
        guest.sessions.write({ sessionId, attachmentId, sequence, data: Buffer.from(`l${sequence}\n`) }, soon()),
      );
    }
    await reader.until(() => reader.text.includes(`${lines}:`));
    const expected = `up\r\n${Array.from({ length: lines }, (_, at) => `${at + 1}:l${at + 1}\r\n`).join("")}`;
    await reader.until(() => reader.text.length >= expected.length);
    expect(reader.text).toBe(expected);
    expect(reader.events.filter(({ t }) => t === "attached")).toHaveLength(1);
  }, 60_000);

  it("ends with SESSION_DETACHED, id and offset, when the guest is not found again; the program goes on", async () => {
    const { address } = await guestProcess();
    const proxy = await faultProxy(address);
    const clock = new ManualClock();
    const guest = clientOf(proxy.address, clock);
    await guest.sessions.open(scriptOf("s", "echo up; sleep 100"), new Deadline(clock, 10_000));
    const reader = new Reader(guest, attachTo("s"));
    await reader.until(() => reader.text.includes("up"));
    proxy.refuse(true);
    let failure: unknown;
    void reader.over.then((error) => {
      failure = error;
    });
    let passedMs = 0;
    for (; failure === undefined; passedMs += 250) {
      await clock.advance(250);
    }
    expect(failure).toMatchObject({ reason: "SESSION_DETACHED", metadata: { session_id: "s", offset: "4" } });
    expect(passedMs).toBeGreaterThanOrEqual(reattachWindowMs);
    const { sessions } = await clientOf(address).sessions.list(soon());
    expect(sessions).toMatchObject([{ exit: undefined }]);
  });

  it("G18 ends with ATTACHMENT_DISPLACED when another takes its place, also while its link is down", async () => {
    const { address } = await guestProcess();
    const proxy = await faultProxy(address);
    const guest = clientOf(proxy.address);
    await guest.sessions.open(scriptOf("s", "echo up; sleep 100"), soon());
    const reader = new Reader(guest, attachTo("s"));
    await reader.until(() => reader.text.includes("up"));
    proxy.refuse(true);
    const other = new Reader(clientOf(address), attachTo("s"));
    await other.until(() => other.text.includes("up"));
    proxy.refuse(false);
    expect(await reader.over).toMatchObject({
      reason: "ATTACHMENT_DISPLACED",
      metadata: { by: other.attached.attachmentId },
    });
  });

  it("B32 a restart of the agent is SESSION_LOST for who was attached, and for who comes later", async () => {
    const first = await guestProcess();
    const guest = clientOf(first.address);
    await guest.sessions.open(scriptOf("s", "echo up; sleep 100"), soon());
    const reader = new Reader(guest, attachTo("s"));
    await reader.until(() => reader.text.includes("up"));
    first.child.kill("SIGKILL");
    await first.exited;
    await guestProcess(first);
    expect(await reader.over).toMatchObject({ reason: "SESSION_LOST", metadata: { boot_id: reader.attached.bootId } });
    const late = new Reader(guest, attachTo("s"));
    expect(await late.over).toMatchObject({ reason: "SESSION_LOST" });
  });

  it("L39 a closed client of the guest is a lost guest to who was attached: it never looks as if nothing had been sent", async () => {
    const guest = clientOf((await guestProcess()).address);
    await guest.sessions.open(scriptOf("s", "echo up; sleep 100"), soon());
    const reader = new Reader(guest, attachTo("s"));
    await reader.until(() => reader.text.includes("up"));
    guest.close();
    expect(await reader.over).toBeInstanceOf(GuestLost);
  });

  it("a client that closes ends what is bound to it; one that is merely given up does not", async () => {
    const guest = clientOf((await guestProcess()).address);
    const bound = (id: string): OpenSessionWish => scriptOf(id, "echo up; sleep 100", { clientBound: true });
    for (const id of ["closed", "left"]) await guest.sessions.open(bound(id), soon());
    const [closing, leaving] = [new AbortController(), new AbortController()];
    const readers = [
      new Reader(guest, attachTo("closed"), closing.signal),
      new Reader(guest, attachTo("left"), leaving.signal),
    ];
    for (const reader of readers) await reader.until(() => reader.text.includes("up"));
    leaving.abort(new LeaveRunning());
    closing.abort(new Error("the client went"));
    expect(await readers[0]?.over).toMatchObject({ message: "the client went" });
    const sessionId = idOf("closed");
    const end = await guest.sessions.read({ sessionId, fromOffset: 4, maxBytes: undefined, waitMs: 10_000 }, soon());
    expect(end.session.exit).toMatchObject({ status: { t: "signal", signal: "SIGKILL" } });
    const { sessions } = await guest.sessions.list(soon());
    expect(sessions.find((session) => session.sessionId === "left")).toMatchObject({
      exit: undefined,
      attached: false,
    });
  });

  it("L25 releaseSessions ends the streams with its reason and what is bound to a client; programs of their own go on", async () => {
    const { address } = await guestProcess();
    const guest = clientOf(address);
    await guest.sessions.open(scriptOf("own", "echo up; sleep 100"), soon());
    await guest.sessions.open(scriptOf("bound", "echo up; sleep 100", { clientBound: true }), soon());
    const readers = [new Reader(guest, attachTo("own")), new Reader(guest.under(undefined), attachTo("bound"))];
    const stranger = new Reader(clientOf(address), attachTo("own", { mode: "observe" }));
    for (const reader of [...readers, stranger]) await reader.until(() => reader.text.includes("up"));
    const why = new HoldfastError("WORKSPACE_SUSPENDED", { message: "it is being suspended" });
    await guest.releaseSessions(why, soon());
    for (const reader of readers) expect(await reader.over).toBe(why);
    const { sessions } = await clientOf(address).sessions.list(soon());
    expect(sessions.find(({ sessionId }) => sessionId === "own")).toMatchObject({ exit: undefined, attached: false });
    expect(sessions.find(({ sessionId }) => sessionId === "bound")?.exit).toBeDefined();
    expect(stranger.events.at(-1)?.t).toBe("output");
  });

  it("L25 releaseSessions does not wait longer than it may for a guest that does not answer", async () => {
    const proxy = await faultProxy((await guestProcess()).address);
    const guest = clientOf(proxy.address);
    await guest.sessions.open(scriptOf("s", "echo up; sleep 100"), soon());
    const reader = new Reader(guest, attachTo("s"));
    await reader.until(() => reader.text.includes("up"));
    proxy.refuse(true);
    const why = new HoldfastError("WORKSPACE_SUSPENDED", { message: "it is being suspended" });
    await guest.releaseSessions(why, soon(300));
    expect(await reader.over).toBe(why);
  });
});

describe("a port of the guest", () => {
  it("B67 is reached both ways, and a server that is not there is refused by name", async () => {
    const guest = clientOf((await guestProcess()).address);
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      let heard = 0;
      socket.on("data", (bytes) => {
        heard += bytes.length;
      });
      socket.on("end", () => socket.end(`heard ${heard}`));
      socket.on("error", () => undefined);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const tunnel = await guest.connectPort({ host: "127.0.0.1", port }, never);
    for (let at = 0; at < 20; at += 1) await tunnel.send(Buffer.alloc(100_000));
    tunnel.closeSending();
    let answer = "";
    for await (const bytes of tunnel.received) answer += Buffer.from(bytes).toString();
    expect(answer).toBe("heard 2000000");
    await tunnel.ended;
    server.close();
    await once(server, "close");
    const refused = guest.connectPort({ host: "127.0.0.1", port }, never);
    await expect(refused).rejects.toMatchObject({ reason: "PORT_REFUSED" });
  });

  it("B67 a program that has closed its side and then resets is not taken for one that had everything", async () => {
    const guest = clientOf((await guestProcess()).address);
    const accepted = Promise.withResolvers<Socket>();
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
      socket.on("error", () => undefined);
      socket.end("that was all");
      accepted.resolve(socket);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => {
      server.close();
    });
    const { port } = server.address() as AddressInfo;
    const tunnel = await guest.connectPort({ host: "127.0.0.1", port }, never);
    let answer = "";
    for await (const bytes of tunnel.received) answer += Buffer.from(bytes).toString();
    expect(answer).toBe("that was all");
    // More than all sockets on the way hold: the rest waits for room that never comes.
    for (let at = 0; at < 512; at += 1) tunnel.send(Buffer.alloc(64 * 1024)).catch(() => undefined);
    tunnel.closeSending();
    (await accepted.promise).resetAndDestroy();
    await expect(tunnel.ended).rejects.toMatchObject({ reason: "PORT_RESET" });
  });

  it("a lost link is an error, never an end; an abort ends it", async () => {
    const proxy = await faultProxy((await guestProcess()).address);
    const guest = clientOf(proxy.address);
    const server = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.write("hello");
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => {
      server.close();
    });
    const { port } = server.address() as AddressInfo;
    const read = async (received: AsyncIterable<Uint8Array>, onFirst: () => void): Promise<void> => {
      for await (const _ of received) onFirst();
    };
    const lost = await guest.connectPort({ host: "127.0.0.1", port }, never);
    await expect(read(lost.received, () => proxy.cut())).rejects.toBeInstanceOf(GuestLost);
    const leaving = new AbortController();
    const left = await guest.connectPort({ host: "127.0.0.1", port }, leaving.signal);
    await expect(read(left.received, () => leaving.abort(new Error("enough")))).rejects.toThrow("enough");
    await expect(lost.ended).rejects.toBeInstanceOf(GuestLost);
    await expect(left.ended).rejects.toThrow("enough");
  });
});
