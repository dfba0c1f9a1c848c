import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { Deadline, systemClock } from "@holdfast/async";
import { type HolderEpoch, holderEpochFrom, isSessionId, linkStreamCloseMs, type SessionId } from "@holdfast/contract";
import { guestDialler } from "@holdfast/guest-client";
import type { AttachSessionWish, Guest, SessionEvent } from "@holdfast/workspace";
import { describe, expect, it, onTestFinished } from "vitest";
import { type GuestProcess, guestProcess } from "./guest-process.ts";

const soon = (ms = 15_000): Deadline => new Deadline(systemClock, ms);
const never = new AbortController().signal;
/** Told by a connection that nothing holds up: a busy machine's time, and not that of the stream that stands. */
const atOnceMs = linkStreamCloseMs - 1_000;

function idOf(text: string): SessionId {
  if (!isSessionId(text)) throw new Error(text);
  return text;
}

const sessionId = idOf("s");
const attachTo = (more: Partial<AttachSessionWish> = {}): AttachSessionWish => ({
  sessionId,
  fromOffset: 0,
  mode: "exclusive",
  size: undefined,
  attachmentId: undefined,
  expectedBootId: undefined,
  ...more,
});

/** More than a reader that stands still is sent before its socket is paused, and less than the guest keeps. */
const lines = 140_000;
const output = Array.from({ length: lines }, (_, at) => `${at + 1}\n`).join("");

async function openCounting(guest: Guest, script = `stty raw -echo; seq ${lines}; exec sleep 100`): Promise<void> {
  await guest.sessions.open(
    {
      sessionId,
      kind: "terminal",
      command: "sh",
      args: ["-c", script],
      cwd: undefined,
      env: {},
      size: undefined,
      login: false,
      clientBound: false,
      expectedBootId: undefined,
    },
    soon(),
  );
}

/** Callers of one guest, each with connections of its own, as replicas of the service have. */
async function callers() {
  const agent = await guestProcess();
  const caller = (epoch?: HolderEpoch) => {
    const dialler = guestDialler(systemClock);
    const guest = dialler.guest(agent.address).under(epoch);
    onTestFinished(() => guest.close());
    return { guest, counts: dialler.counts };
  };
  return { agent, caller };
}

/** A reader that has had `attached` and stands still from there on. */
async function standingStill(guest: Guest) {
  const events = guest.sessions.attach(attachTo(), never)[Symbol.asyncIterator]();
  const first = await events.next();
  if (first.done || first.value.t !== "attached") throw new Error("not attached");
  // All that it could have been sent is on its way.
  const written = async () => (await guest.sessions.list(soon())).sessions[0]?.nextOffset;
  await expect.poll(written, { timeout: 20_000 }).toBe(output.length);
  const { attachmentId } = first.value;
  return { attachmentId, rest: { [Symbol.asyncIterator]: () => events } };
}

interface Read {
  readonly text: string;
  readonly position: number;
  readonly gapBytes: number;
  readonly failure: unknown;
}

/** Reads to the end, or as far as wished, and fails where it is not one unbroken sequence. */
async function readOn(
  events: AsyncIterable<SessionEvent>,
  from: number,
  enough = Number.POSITIVE_INFINITY,
): Promise<Read> {
  const parts: Uint8Array[] = [];
  let position = from;
  let gapBytes = 0;
  const read = (failure: unknown): Read => ({ text: Buffer.concat(parts).toString(), position, gapBytes, failure });
  try {
    for await (const event of events) {
      if (event.t === "output") {
        if (event.offset !== position) throw new Error(`output at ${event.offset}, expected ${position}`);
        position += event.data.length;
        parts.push(event.data);
      } else if (event.t === "gap") {
        if (event.from !== position) throw new Error(`a gap at ${event.from}, expected ${position}`);
        gapBytes += event.to - event.from;
        position = event.to;
      }
      if (position >= enough) break;
    }
    return read(undefined);
  } catch (error) {
    return read(error);
  }
}

async function untilZero(counts: { readonly attachments: number }): Promise<number> {
  const began = performance.now();
  await expect.poll(() => counts.attachments, { timeout: 10_000, interval: 20 }).toBe(0);
  return performance.now() - began;
}

type Force = (by: Guest, attachmentId: Awaited<ReturnType<typeof standingStill>>["attachmentId"]) => Promise<unknown>;

/** Ways in which the guest ends an attachment by force. */
const forces: readonly (readonly [what: string, reason: string, force: Force])[] = [
  [
    "displaced by another",
    "ATTACHMENT_DISPLACED",
    async (by) => by.sessions.attach(attachTo(), never)[Symbol.asyncIterator]().next(),
  ],
  [
    "detached by name",
    "ATTACHMENT_NOT_FOUND",
    (by, attachmentId) => by.sessions.detach({ sessionId, attachmentId, clientClosed: false }, soon()),
  ],
  ["superseded by another holder", "HOLDER_EPOCH_SUPERSEDED", (by) => by.fence(holderEpochFrom(2), soon())],
];

describe("a reader that stands still when its attachment is ended by force", () => {
  it.each(forces)(
    "G5 G18 is let go at once, reads what it had been sent, then why; from there on nothing is lost or doubled: %s",
    async (_what, reason, force) => {
      const { caller } = await callers();
      const { guest, counts } = caller();
      await openCounting(guest);
      const still = await standingStill(guest);
      const other = caller().guest;
      await expect.poll(() => counts.connections).toBe(4); // Control, the stream, two spare ones.
      expect(counts.attachments).toBe(1);
      await force(other, still.attachmentId);
      expect(await untilZero(counts)).toBeLessThan(atOnceMs);
      await expect.poll(() => counts.connections, { timeout: 2 * linkStreamCloseMs }).toBe(3);
      // It reads on: later than the guest has waited for it.
      const read = await readOn(still.rest, 0);
      expect(read.failure).toMatchObject({ reason });
      expect(read.gapBytes).toBe(0);
      expect(read.position).toBeGreaterThan(0);
      expect(read.position).toBeLessThan(output.length);
      const observing = other.sessions.attach(attachTo({ mode: "observe", fromOffset: read.position }), never);
      const rest = await readOn(observing, read.position, output.length);
      expect(rest).toMatchObject({ failure: undefined, gapBytes: 0 });
      expect(read.text + rest.text === output).toBe(true);
    },
    60_000,
  );

  /** A tunnel that is sent more than all buffers on the way hold, and nobody reads. */
  async function tunnelStandingStill(guest: Guest, signal = never) {
    const server = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.write(Buffer.alloc(bytesSent));
    });
    server.listen(0, "127.0.0.1");
    onTestFinished(() => void server.close());
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    return await guest.connectPort({ port, host: "127.0.0.1" }, signal);
  }
  const bytesSent = 32 * 1024 * 1024;

  it("G5a G31 a tunnel that nobody reads is told at once that another holder has the guest, and never that it ended in order", async () => {
    const { caller } = await callers();
    const tunnel = await tunnelStandingStill(caller().guest);
    const began = performance.now();
    await caller().guest.fence(holderEpochFrom(2), soon());
    await expect(tunnel.ended).rejects.toMatchObject({ reason: "HOLDER_EPOCH_SUPERSEDED" });
    expect(performance.now() - began).toBeLessThan(atOnceMs);
    let bytes = 0;
    const reading = (async () => {
      for await (const data of tunnel.received) bytes += data.length;
    })();
    await expect(reading).rejects.toMatchObject({ reason: "HOLDER_EPOCH_SUPERSEDED" });
    expect(bytes).toBeLessThan(bytesSent);
  });

  it("G5a L44 such a tunnel is still its client's to leave: nothing waits the 5 s then", async () => {
    const { caller } = await callers();
    const { guest, counts } = caller();
    const leaving = new AbortController();
    const tunnel = await tunnelStandingStill(guest, leaving.signal);
    await expect.poll(() => counts.connections).toBe(4); // Control, the tunnel, two spare ones.
    await caller().guest.fence(holderEpochFrom(2), soon());
    await expect(tunnel.ended).rejects.toMatchObject({ reason: "HOLDER_EPOCH_SUPERSEDED" });
    leaving.abort(new Error("the client leaves"));
    await expect.poll(() => counts.connections, { timeout: atOnceMs }).toBe(3);
  });
});

describe("what goes by the control connection", () => {
  const trapping = `stty raw -echo; trap 'echo winch >> seen' WINCH; trap 'echo int >> seen' INT; seq ${lines}; while :; do sleep 0.05; done`;

  it("G5 G20 resize, signal, kill and detach work while the stream's socket is paused", async () => {
    const { agent, caller } = await callers();
    const { guest, counts } = caller();
    await openCounting(guest, trapping);
    const still = await standingStill(guest);
    const { attachmentId } = still;
    await guest.sessions.resize({ sessionId, attachmentId, size: { columns: 101, rows: 51 } }, soon());
    await seenIn(agent, "winch");
    await guest.sessions.signal({ sessionId, attachmentId, signal: "INT" }, soon());
    await seenIn(agent, "int");
    const [row] = (await guest.sessions.list(soon())).sessions;
    expect(row).toMatchObject({ size: { columns: 101, rows: 51 }, attached: true });
    await guest.sessions.detach({ sessionId, attachmentId, clientClosed: false }, soon());
    expect((await guest.sessions.list(soon())).sessions[0]).toMatchObject({ attached: false, exit: undefined });
    expect(await untilZero(counts)).toBeLessThan(atOnceMs);
    expect((await guest.sessions.kill({ sessionId, signal: "KILL" }, soon())).exit).toMatchObject({
      status: { t: "signal", signal: "SIGKILL" },
    });
    expect((await readOn(still.rest, 0)).failure).toMatchObject({ reason: "ATTACHMENT_NOT_FOUND" });
  }, 60_000);

  it("G5 G22 a program that is killed is no forced end: a reader that stood still has all its output, then its exit", async () => {
    const { caller } = await callers();
    const { guest, counts } = caller();
    await openCounting(guest);
    const still = await standingStill(guest);
    await guest.sessions.kill({ sessionId, signal: "KILL" }, soon());
    expect(counts.attachments).toBe(1);
    const read = await readOn(still.rest, 0);
    expect(read.failure).toBeUndefined();
    expect(read.text === output).toBe(true);
  }, 60_000);
});

async function seenIn({ root }: GuestProcess, word: string): Promise<void> {
  await expect
    .poll(async () => (await readFile(`${root}/seen`, "utf8").catch(() => "")).includes(word), { timeout: 10_000 })
    .toBe(true);
}
