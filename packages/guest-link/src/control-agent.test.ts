import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { AgentService } from "@holdfast/api/holdfast/guest/v1/agent_pb";
import { CallSchema, ReplySchema } from "@holdfast/api/holdfast/guest/v1/link_pb";
import { linkCallsMax, linkUnreadPongsMax, linkUnreadRepliesMaxBytes } from "@holdfast/contract";
import { HandClock } from "@holdfast/testkit";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ControlAgent } from "./control-agent.ts";
import { FakeSocket } from "./fake-socket.testing.ts";
import { frameTypes } from "./frame.ts";
import { LinkProtocolError } from "./link-errors.ts";
import { methodNameOf, Router } from "./router.ts";

const nothing = Buffer.alloc(0);
const { health, probe } = AgentService.method;

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

/** An agent whose health answers, and whose probe stands until its signal aborts. */
function controlled() {
  const signals: AbortSignal[] = [];
  const router = new Router()
    .unary(health, async () => ({ serving: true }))
    .unary(probe, (_request, { signal }) => {
      signals.push(signal);
      return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    });
  const socket = new FakeSocket();
  const agent = new ControlAgent(socket.framed, router, "boot-1", new HandClock(), () => undefined);
  const call = (callId: number, method: typeof health | typeof probe = probe, timeoutMs = 0n): void =>
    agent.frame(
      frameTypes.call,
      Buffer.from(toBinary(CallSchema, create(CallSchema, { method: methodNameOf(method), timeoutMs }))),
      callId,
    );
  const replies = () => socket.sent.map(({ payload, callId }) => ({ callId, ...fromBinary(ReplySchema, payload) }));
  const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  return { agent, socket, signals, call, replies, settle };
}

describe("a call of an agent", () => {
  it("is aborted by its caller's CANCEL, by its time, and by the end of its connection, and then has no reply", async () => {
    const { agent, call, signals, socket, settle } = controlled();
    for (const callId of [1, 2, 3]) call(callId, probe, callId === 2 ? 5_000n : 0n);
    await settle();
    agent.frame(frameTypes.cancel, nothing, 1);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, false, false]);
    vi.advanceTimersByTime(4_999);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, false, false]);
    vi.advanceTimersByTime(1);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true, false]);
    agent.closed(new Error("cut"));
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true, true]);
    await settle();
    expect(socket.sent).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it.each([0n, 2n ** 31n, 2n ** 53n])(
    "B56 with a time of %s ms, which no timer keeps, is not aborted by it",
    async (timeoutMs) => {
      const { call, signals, settle } = controlled();
      call(1, probe, timeoutMs);
      await settle();
      vi.advanceTimersByTime(60_000);
      expect(vi.getTimerCount()).toBe(0);
      expect(signals[0]?.aborted).toBe(false);
    },
  );

  it("bears a number that no other has at the time, and that may be had again", async () => {
    const { call, replies, settle } = controlled();
    call(1);
    expect(() => call(1)).toThrow(LinkProtocolError);
    call(2, health);
    await settle();
    call(2, health);
    await settle();
    expect(replies()).toMatchObject([{ callId: 2 }, { callId: 2 }]);
  });

  it("is refused by name above as many as there may be at once", async () => {
    const { call, replies, settle } = controlled();
    for (let callId = 1; callId <= linkCallsMax; callId += 1) call(callId);
    await settle();
    expect(replies()).toEqual([]);
    call(linkCallsMax + 1);
    await settle();
    expect(replies()).toMatchObject([{ callId: linkCallsMax + 1, status: { reason: "STREAM_CAPACITY" } }]);
  });

  it("G2 ends its connection with its reply, where too many are left unread", async () => {
    const { call, socket, settle } = controlled();
    socket.bytesWaiting = linkUnreadRepliesMaxBytes;
    call(1, health);
    await settle();
    expect(socket.asked).toEqual([]);
    socket.bytesWaiting += 1;
    call(2, health);
    await settle();
    expect(socket.asked).toEqual(["destroy"]);
  });
});

describe("G3 a ping", () => {
  it("is answered, however many there are, while answers are read; those left unread are counted in a row", () => {
    const { agent, socket } = controlled();
    const ping = (): void => agent.frame(frameTypes.ping, nothing, 0);
    for (let pings = 0; pings < 2 * linkUnreadPongsMax; pings += 1) ping();
    for (let twice = 0; twice < 2; twice += 1) {
      socket.isBlocked = true;
      for (let pings = 0; pings < linkUnreadPongsMax; pings += 1) ping();
      socket.isBlocked = false;
      ping();
    }
    expect(socket.sent).toHaveLength(4 * linkUnreadPongsMax + 2);
  });
});
