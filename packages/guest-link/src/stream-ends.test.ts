import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { ExecutionService } from "@holdfast/api/holdfast/guest/v1/execution_pb";
import { EndSchema, OpenSchema } from "@holdfast/api/holdfast/guest/v1/link_pb";
import { linkSilenceMaxMs, linkStreamCloseMs } from "@holdfast/contract";
import { HandClock } from "@holdfast/testkit";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { FakeSocket } from "./fake-socket.testing.ts";
import { frameTypes } from "./frame.ts";
import { AnsweredError, LinkLost, LinkProtocolError } from "./link-errors.ts";
import { methodNameOf, Router } from "./router.ts";
import { AgentStream } from "./stream-agent.ts";
import { CallerStream } from "./stream-caller.ts";

const follow = ExecutionService.method.followExecution;
const why = new AnsweredError("ATTACHMENT_DISPLACED", "another");
const endOf = (init: { clientClosed?: boolean; status?: { reason: string } } = {}): Buffer =>
  Buffer.from(toBinary(EndSchema, create(EndSchema, init)));
const forced = endOf({ status: { reason: why.reason } });
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

describe("the caller's side of a stream", () => {
  function caller(opens = true) {
    const clock = new HandClock();
    const socket = new FakeSocket();
    let closed = 0;
    const stream = new CallerStream(socket.framed, { bootId: "b", features: [], clock }, () => {
      closed += 1;
    });
    const heard: string[] = [];
    const listener = {
      message: () => void heard.push("message"),
      data: (bytes: Buffer) => void heard.push(bytes.toString()),
      ending: () => void heard.push("ending"),
      over: (error: Error | undefined) => void heard.push(`over ${error?.message}`),
    };
    if (opens) stream.open(7, "a.B/C", Buffer.from("m"), 5n, 1_500.5, listener);
    return { clock, socket, stream, heard, closed: () => closed };
  }

  it("is opened with its number, its epoch and the time that is left", () => {
    const { socket } = caller();
    expect(fromBinary(OpenSchema, socket.sent[0]?.payload ?? forced)).toMatchObject({
      streamId: 7,
      method: "a.B/C",
      epoch: 5n,
      timeoutMs: 1_501n,
    });
  });

  it("takes nothing before it is opened: whatever comes breaks the protocol", () => {
    const { stream } = caller(false);
    expect(() => stream.frame(frameTypes.message, forced)).toThrow(LinkProtocolError);
    expect(() => stream.data(Buffer.from("x"))).toThrow(LinkProtocolError);
  });

  it("says its own end once, delivers nothing after it, reads on, and is closed once a link would be given up", () => {
    const { stream, socket, heard, closed } = caller();
    stream.end({ clientClosed: true });
    stream.end({ clientClosed: false });
    expect(socket.types).toEqual([frameTypes.open, frameTypes.end]);
    expect(fromBinary(EndSchema, socket.sent[1]?.payload ?? forced).clientClosed).toBe(true);
    expect(socket.asked).toEqual(["finish", "resume"]);
    stream.data(Buffer.from("late"));
    stream.frame(frameTypes.message, forced);
    vi.advanceTimersByTime(linkSilenceMaxMs - 1);
    expect(socket.asked).toEqual(["finish", "resume"]);
    vi.advanceTimersByTime(1);
    expect(socket.asked).toEqual(["finish", "resume", "destroy"]);
    stream.closed(undefined);
    expect(heard).toEqual([]);
    expect(closed()).toBe(1);
  });

  it("is closed at the agent's END, after which its own says nothing, and is over once", () => {
    const { stream, socket, heard, closed } = caller();
    stream.frame(frameTypes.end, endOf());
    expect(socket.asked).toEqual(["destroy"]);
    stream.end({ clientClosed: true });
    stream.closed(undefined);
    expect(socket.types).toEqual([frameTypes.open]);
    expect(heard).toEqual(["over undefined"]);
    expect(closed()).toBe(1);
  });

  it.each([
    ["its own end", (stream: CallerStream) => stream.end({ clientClosed: true })],
    ["the agent's END", (stream: CallerStream) => stream.frame(frameTypes.end, forced)],
    ["the loss of its connection", (stream: CallerStream) => stream.closed(undefined)],
  ])("waits for no forced end any more after %s, come before or behind it", (_what, ends) => {
    for (const forcedFirst of [true, false]) {
      const { stream, clock, heard } = caller();
      if (forcedFirst) stream.endByForce(forced);
      ends(stream);
      if (!forcedFirst) stream.endByForce(forced);
      expect(clock.pending).toBe(0);
      expect(heard.filter((one) => one === "ending")).toHaveLength(forcedFirst ? 1 : 0);
    }
  });
});

describe("the agent's side of a stream", () => {
  function agent(handle: (stream: AgentStream) => Promise<void>) {
    const clock = new HandClock();
    const socket = new FakeSocket();
    const told: number[] = [];
    const router = new Router().stream(follow, (_request, stream) => handle(stream));
    const needs = {
      router,
      bootId: "b",
      clock,
      tellForced: ({ streamId }: { streamId: number }) => void told.push(streamId),
    };
    const stream = new AgentStream(socket.framed, needs, () => undefined);
    const open = (): void =>
      stream.frame(
        frameTypes.open,
        Buffer.from(toBinary(OpenSchema, create(OpenSchema, { method: methodNameOf(follow), streamId: 7 }))),
      );
    return { clock, socket, stream, open, told };
  }
  const standing = async (stream: AgentStream): Promise<void> => void (await stream.callerEnd);
  const none = Buffer.alloc(0);

  it("takes one OPEN, first, and neither bytes nor EOF where its handler takes none", () => {
    const early = agent(standing);
    expect(() => early.stream.frame(frameTypes.end, endOf())).toThrow(LinkProtocolError);
    const { stream, open } = agent(standing);
    open();
    expect(open).toThrow(LinkProtocolError);
    expect(() => stream.frame(frameTypes.eof, none)).toThrow(LinkProtocolError);
    expect(() => stream.data(Buffer.from("x"))).toThrow(LinkProtocolError);
  });

  it("ends with its handler, once; what the caller had sent before it heard is dropped", async () => {
    const { stream, open, socket } = agent(async () => undefined);
    open();
    await settle();
    expect(socket.types).toEqual([frameTypes.end]);
    expect(socket.asked).toEqual(["finish"]);
    stream.data(Buffer.from("x"));
    stream.frame(frameTypes.eof, none);
    stream.endByForce(why);
    expect(socket.types).toEqual([frameTypes.end]);
  });

  it("sends no END to a caller that has ended it, and is closed 5 s later", async () => {
    const { stream, open, socket, told } = agent(async (served) => {
      await served.callerEnd;
      throw new Error("too late to tell");
    });
    open();
    stream.frame(frameTypes.end, endOf({ clientClosed: true }));
    expect(await stream.callerEnd).toEqual({ t: "ended", clientClosed: true });
    stream.endByForce(why);
    await settle();
    expect(socket.types).toEqual([]);
    expect(told).toEqual([]);
    expect(socket.asked[0]).toBe("finish");
    expect(socket.asked).not.toContain("destroy");
    vi.advanceTimersByTime(linkStreamCloseMs);
    expect(socket.asked).toContain("destroy");
  });

  it("that is ended by force ends its upload's reader, sends nothing that its handler still settles with, and leaves no timer", async () => {
    const failure = Promise.withResolvers<unknown>();
    const { stream, open, socket, clock, told } = agent(async (served) => {
      await served.takeUpload().read().catch(failure.resolve);
    });
    open();
    stream.endByForce(why);
    stream.endByForce(new AnsweredError("HOLDER_EPOCH_SUPERSEDED", "again"));
    expect(await failure.promise).toBeInstanceOf(LinkLost);
    await settle();
    expect(socket.types).toEqual([frameTypes.end]);
    expect(fromBinary(EndSchema, socket.sent[0]?.payload ?? none).status?.reason).toBe(why.reason);
    expect(told).toEqual([7]);
    expect(clock.pending).toBe(1);
    stream.closed();
    expect(clock.pending).toBe(0);
  });
});
