import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { CallSchema, ReplySchema } from "@holdfast/api/holdfast/guest/v1/link_pb";
import { Deadline } from "@holdfast/async";
import { linkPingEveryMs, linkSilenceMaxMs } from "@holdfast/contract";
import { HandClock } from "@holdfast/testkit";
import { describe, expect, it } from "vitest";
import { ControlCaller } from "./control-caller.ts";
import { FakeSocket } from "./fake-socket.testing.ts";
import { frameTypes } from "./frame.ts";
import { LinkLost, PeerSilent } from "./link-errors.ts";

const nothing = Buffer.alloc(0);
const message = Buffer.from("m");

function controlled() {
  const clock = new HandClock();
  const socket = new FakeSocket();
  const closed: unknown[] = [];
  const listener = { streamEnded: () => undefined, closed: (cause: unknown) => void closed.push(cause) };
  const control = new ControlCaller(socket.framed, clock, listener);
  const replies = (callId: number): void =>
    control.frame(frameTypes.reply, Buffer.from(toBinary(ReplySchema, create(ReplySchema, { bootId: "b" }))), callId);
  const pong = (): void => control.frame(frameTypes.pong, nothing, 0);
  return { clock, socket, control, replies, pong, closed };
}

describe("a call", () => {
  it("carries its method, its message, its epoch where it has one, and the time that is left", async () => {
    const { clock, control, socket, replies } = controlled();
    using within = new Deadline(clock, 7_000);
    clock.pass(500);
    const calls = [control.call("a.B/C", message, 5n, within), control.call("a.B/C", message, undefined, within)];
    const [first, second] = socket.sent.map(({ payload }) => fromBinary(CallSchema, payload));
    expect(first).toMatchObject({ method: "a.B/C", epoch: 5n, timeoutMs: 6_500n });
    expect(Buffer.from(first?.message ?? nothing)).toEqual(message);
    expect(second?.epoch).toBeUndefined();
    for (const { callId } of socket.sent) replies(callId);
    await Promise.all(calls);
  });

  it("that is given up is cancelled under its number, and one that was answered is not", async () => {
    const { clock, control, socket, replies } = controlled();
    const gone = new AbortController();
    using within = new Deadline(clock, 7_000, gone.signal);
    const answered = control.call("a.B/C", message, undefined, within);
    const given = control.call("a.B/C", message, undefined, within);
    const [first, second] = socket.sent.map(({ callId }) => callId);
    replies(first ?? 0);
    await answered;
    gone.abort(new Error("gone"));
    await expect(given).rejects.toThrow("gone");
    expect(socket.sent.slice(2)).toMatchObject([{ type: frameTypes.cancel, callId: second }]);
  });

  it("is not sent once its time is over, nor on a connection that is closed", async () => {
    const { clock, control, socket } = controlled();
    using over = new Deadline(clock, 7_000, AbortSignal.abort(new Error("over")));
    await expect(control.call("a.B/C", message, undefined, over)).rejects.toThrow("over");
    using within = new Deadline(clock, 7_000);
    socket.isClosed = true;
    await expect(control.call("a.B/C", message, undefined, within)).rejects.toBeInstanceOf(LinkLost);
    expect(socket.sent).toEqual([]);
  });
});

describe("G3 the silence of a guest", () => {
  it("is counted from when it was last heard, not from the ping before", () => {
    const { clock, socket, pong } = controlled();
    clock.pass(linkPingEveryMs);
    clock.pass(5_000);
    pong();
    clock.pass(linkPingEveryMs - 5_000);
    for (let pings = 0; pings < 2; pings += 1) clock.pass(linkPingEveryMs);
    clock.pass(4_999);
    expect(socket.asked).toEqual([]);
    clock.pass(1);
    expect(socket.cause).toBeInstanceOf(PeerSilent);
    expect(clock.monotonicMs()).toBe(linkPingEveryMs + 5_000 + linkSilenceMaxMs);
  });

  it("is not found in one that answers each ping, for however long", () => {
    const { clock, socket, pong } = controlled();
    for (let pings = 0; pings < 100; pings += 1) {
      clock.pass(linkPingEveryMs);
      pong();
    }
    expect(socket.asked).toEqual([]);
    expect(socket.types).toEqual(Array(100).fill(frameTypes.ping));
  });

  it("after a sign was demanded again counts from the last demand; a sign ends it", () => {
    const { clock, socket, control, pong } = controlled();
    control.demandSign(5_000);
    clock.pass(3_000);
    control.demandSign(5_000);
    clock.pass(3_000);
    expect(socket.asked).toEqual([]);
    pong();
    clock.pass(5_000);
    expect(socket.asked).toEqual([]);
  });

  it("is of no interest any more once the connection is closed: no timer is left", () => {
    const { clock, control, closed } = controlled();
    control.demandSign(5_000);
    control.closed(new Error("cut"));
    expect(clock.pending).toBe(0);
    expect(closed).toHaveLength(1);
  });
});
