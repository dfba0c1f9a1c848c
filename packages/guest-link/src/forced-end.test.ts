import { createServer } from "node:net";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { AgentService } from "@holdfast/api/holdfast/guest/v1/agent_pb";
import { ExecutionService } from "@holdfast/api/holdfast/guest/v1/execution_pb";
import { EndSchema, OpenSchema } from "@holdfast/api/holdfast/guest/v1/link_pb";
import { type Clock, Deadline, systemClock } from "@holdfast/async";
import { linkStreamCloseMs } from "@holdfast/contract";
import { HandClock } from "@holdfast/testkit";
import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import { frameTypes } from "./frame.ts";
import type { FramedSocket } from "./framed-socket.ts";
import { greet } from "./handshake-agent.ts";
import { dial, newClientId } from "./handshake-caller.ts";
import { LinkClient } from "./link-client.ts";
import { AnsweredError } from "./link-errors.ts";
import { eventually, host, listening, token } from "./loopback.testing.ts";
import { methodNameOf } from "./router.ts";
import type { AgentStream } from "./stream-agent.ts";

const soon = (ms = 10_000) => new Deadline(systemClock, ms);
const follow = ExecutionService.method.followExecution;
const mebibyte = 1024 * 1024;
const displaced = () => new AnsweredError("ATTACHMENT_DISPLACED", "Displaced by the test.", { by: "another" });

/** An agent whose streams the test holds, and a client of it. */
async function stage(clocks: { readonly agent?: Clock; readonly caller?: Clock } = {}) {
  const opened: AgentStream[] = [];
  const handled: ((error?: Error) => void)[] = [];
  const agent = await listening(async (stream) => {
    opened.push(stream);
    await new Promise<void>((resolve, reject) =>
      handled.push((error) => (error === undefined ? resolve() : reject(error))),
    );
  }, clocks.agent);
  onTestFinished(() => agent[Symbol.dispose]());
  const client = new LinkClient(agent.target, clocks.caller ?? systemClock);
  onTestFinished(() => client.close());
  return {
    agent,
    client,
    /** What was sent on the control connection before has been heard. */
    heard: () => client.call(AgentService.method.health, {}, { within: soon() }),
    /** Opens a stream; what its reader has got, and the two ends of it. */
    async open() {
      const at = opened.length;
      const over = Promise.withResolvers<Error | undefined>();
      const got = {
        bytes: 0,
        told: [] as string[],
        ends: 0,
        over: over.promise,
        each: (_bytes: Buffer): void => undefined,
      };
      const listener = {
        message: () => undefined,
        data: (bytes: Buffer) => {
          got.each(bytes);
          got.bytes += bytes.length;
        },
        ending: ({ reason }: AnsweredError) => void got.told.push(reason),
        over: (error: Error | undefined) => {
          got.ends += 1;
          over.resolve(error);
        },
      };
      const caller = await client.open(follow, {}, listener, { within: soon() });
      await eventually(() => opened.length > at && handled.length > at);
      const [stream, finish] = [opened[at], handled[at]];
      if (stream === undefined || finish === undefined) throw new Error("no stream was opened");
      return { caller, got, stream, finish };
    },
  };
}

describe("a stream that the agent ends by force", () => {
  it("G5 gives a reader that reads on all that was sent before, then the reason, once; what its handler still says is dropped", async () => {
    const { open, heard } = await stage();
    const { got, stream, finish } = await open();
    stream.sendData(Buffer.alloc(4 * mebibyte));
    stream.endByForce(displaced());
    stream.sendData(Buffer.alloc(10));
    stream.endByForce(new AnsweredError("INTERNAL_ERROR", "too late"));
    finish();
    expect(await got.over).toMatchObject({ reason: "ATTACHMENT_DISPLACED", metadata: { by: "another" } });
    expect(got.bytes).toBe(4 * mebibyte);
    await heard();
    expect(got.ends).toBe(1);
  });

  it("G5 G18 is told at once, though the socket is paused, and after 5 s the stream is over; what its reader has not read it is not given", async () => {
    const clock = new HandClock();
    const { open, heard } = await stage({ caller: clock });
    const { caller, got, stream } = await open();
    caller.pause();
    stream.sendData(Buffer.alloc(8 * mebibyte));
    stream.endByForce(displaced());
    await heard();
    expect(got.told).toEqual(["ATTACHMENT_DISPLACED"]);
    clock.pass(linkStreamCloseMs - 1);
    expect(got.ends).toBe(0);
    const read = got.bytes;
    clock.pass(1);
    expect(got.ends).toBe(1);
    expect(await got.over).toMatchObject({ reason: "ATTACHMENT_DISPLACED", metadata: { by: "another" } });
    caller.resume();
    await heard();
    expect(got.bytes).toBe(read);
    expect(read).toBeLessThan(8 * mebibyte);
  });

  it("G5 gives a reader that goes on within the 5 s everything, and the reason in its place", async () => {
    const clock = new HandClock();
    const { open, heard } = await stage({ caller: clock });
    const { caller, got, stream } = await open();
    caller.pause();
    stream.sendData(Buffer.alloc(8 * mebibyte));
    stream.endByForce(displaced());
    await heard();
    clock.pass(linkStreamCloseMs - 1);
    caller.resume();
    expect(await got.over).toMatchObject({ reason: "ATTACHMENT_DISPLACED" });
    expect(got.bytes).toBe(8 * mebibyte);
    clock.pass(linkStreamCloseMs);
    expect(got.ends).toBe(1);
  });

  it("G18 is never taken for a lost link: the agent destroys the socket after 5 s, and the reader that then reads on has the reason", async () => {
    const clock = new HandClock();
    const { open, heard } = await stage({ agent: clock });
    const { caller, got, stream } = await open();
    caller.pause();
    stream.sendData(Buffer.alloc(32 * mebibyte)); // More than all buffers between hold: its END is still with the agent.
    stream.endByForce(displaced());
    await heard();
    clock.pass(linkStreamCloseMs);
    expect(await stream.callerEnd).toEqual({ t: "lost" }); // Closed, on the agent's side.
    caller.resume();
    expect(await got.over).toMatchObject({ reason: "ATTACHMENT_DISPLACED" });
    expect(got.bytes).toBeLessThan(32 * mebibyte);
  });

  it("G5 holds up no call meanwhile, and leaves other streams of the caller alone", async () => {
    const { open, heard } = await stage();
    const [first, second] = [await open(), await open()];
    first.caller.pause();
    first.stream.sendData(Buffer.alloc(32 * mebibyte));
    first.stream.endByForce(displaced());
    await heard();
    second.stream.sendData(Buffer.from("goes on"));
    second.finish();
    expect(await second.got.over).toBeUndefined();
    expect(second.got.bytes).toBe(7);
  });

  it("G5 G22 one that ends in order, or by its handler's answer, waits for its reader as long as it takes", async () => {
    for (const answer of [undefined, new AnsweredError("FILE_CHANGED", "after all that it had")]) {
      const [agentClock, callerClock] = [new HandClock(), new HandClock()];
      const { open, heard } = await stage({ agent: agentClock, caller: callerClock });
      const { caller, got, stream, finish } = await open();
      caller.pause();
      stream.sendData(Buffer.alloc(16 * mebibyte));
      finish(answer);
      await heard();
      for (const clock of [agentClock, callerClock]) clock.pass(2 * linkStreamCloseMs);
      await heard();
      expect(got.ends).toBe(0);
      caller.resume();
      expect((await got.over) as AnsweredError | undefined).toEqual(answer);
      expect(got.bytes).toBe(16 * mebibyte);
    }
  });

  it("G18 the reader gets an unbroken beginning of what was sent, then the reason, however sending, reading, time and the end fall", async () => {
    const step = fc.oneof(
      fc.record({ t: fc.constant("send" as const), bytes: fc.integer({ min: 1, max: 3 * mebibyte }) }),
      fc.record({ t: fc.constantFrom("pause" as const, "resume" as const, "heard" as const, "turn" as const) }),
      fc.record({
        t: fc.constantFrom("caller waits" as const, "agent waits" as const),
        ms: fc.integer({ max: 6_000, min: 1 }),
      }),
    );
    const pattern = Buffer.from(Array.from({ length: 251 }, (_, at) => at));
    const patternOf = (at: number, bytes: number): Buffer => {
      const from = at % 251;
      return Buffer.alloc(from + bytes, pattern).subarray(from);
    };
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 8 }), fc.array(step, { maxLength: 8 }), async (before, after) => {
        const [agentClock, callerClock] = [new HandClock(), new HandClock()];
        const { open, heard, client } = await stage({ agent: agentClock, caller: callerClock });
        const { caller, got, stream } = await open();
        let wrong = 0;
        got.each = (bytes) => {
          if (!bytes.equals(patternOf(got.bytes, bytes.length))) wrong += 1;
        };
        let sent = 0;
        const play = async (steps: typeof before): Promise<void> => {
          for (const one of steps) {
            if (one.t === "send") {
              stream.sendData(patternOf(sent, one.bytes));
              sent += one.bytes;
            } else if (one.t === "caller waits") callerClock.pass(one.ms);
            else if (one.t === "agent waits") agentClock.pass(one.ms);
            else if (one.t === "heard") await heard();
            else if (one.t === "turn") await new Promise((resolve) => setImmediate(resolve));
            else caller[one.t]();
          }
        };
        await play(before);
        const whole = sent;
        stream.endByForce(displaced());
        await play(after);
        await heard();
        callerClock.pass(linkStreamCloseMs);
        expect(await got.over).toMatchObject({ reason: "ATTACHMENT_DISPLACED" });
        expect(got.ends).toBe(1);
        expect(wrong).toBe(0);
        expect(got.bytes).toBeLessThanOrEqual(whole);
        client.close();
      }),
      { numRuns: 60 },
    );
  }, 60_000);
});

/** A connection of a caller that does only what the test has it do. */
async function rawConnection(
  target: { readonly host: string; readonly port: number; readonly token: string },
  phase: "control" | "stream",
  clientId: Uint8Array,
) {
  const frames: { readonly type: number; readonly callId: number; readonly payload: Buffer }[] = [];
  let closed = false;
  const listener = {
    frame: (type: number, payload: Buffer, callId: number) => void frames.push({ type, callId, payload }),
    data: () => undefined,
    closed: () => {
      closed = true;
    },
  };
  const { socket } = await dial(target, phase, clientId, () => listener, new AbortController().signal);
  onTestFinished(() => socket.destroy());
  return { socket, frames, isClosed: () => closed };
}

function openBy(socket: FramedSocket, streamId: number): void {
  const open = create(OpenSchema, { method: methodNameOf(follow), streamId });
  socket.send(frameTypes.open, toBinary(OpenSchema, open));
}

const ping = (socket: FramedSocket): boolean => socket.send(frameTypes.ping, Buffer.alloc(0));
const typesOf = (frames: readonly { readonly type: number }[]): number[] => frames.map(({ type }) => type);

describe("the reason of a forced end", () => {
  /** A stream of a caller without a control connection. */
  async function lonelyStream(streamId: number) {
    const opened: AgentStream[] = [];
    const clock = new HandClock();
    const agent = await listening(async (stream) => {
      opened.push(stream);
      await stream.callerEnd;
    }, clock);
    onTestFinished(() => agent[Symbol.dispose]());
    const clientId = newClientId();
    const caller = await rawConnection(agent.target, "stream", clientId);
    openBy(caller.socket, streamId);
    await eventually(() => opened.length === 1);
    const [stream] = opened;
    if (stream === undefined) throw new Error("no stream");
    return { agent, clock, clientId, caller, stream };
  }

  it("G3 travels on the stream itself where there is no control connection, and on the one that is made while the stream stands", async () => {
    const { agent, clock, clientId, caller, stream } = await lonelyStream(9);
    caller.socket.pause();
    stream.sendData(Buffer.alloc(32 * mebibyte));
    stream.endByForce(displaced());
    const control = await rawConnection(agent.target, "control", clientId);
    await eventually(() => control.frames.length === 1);
    const [told] = control.frames;
    expect(told).toMatchObject({ type: frameTypes.streamEnd, callId: 9 });
    expect(fromBinary(EndSchema, told?.payload ?? Buffer.alloc(0))).toMatchObject({
      bootId: "boot-1",
      status: { reason: "ATTACHMENT_DISPLACED", metadata: { by: "another" } },
    });
    clock.pass(linkStreamCloseMs);
    await eventually(() => agent.server.connections.proved === 1);
    const later = await rawConnection(agent.target, "control", clientId);
    ping(later.socket);
    await eventually(() => later.frames.length > 0);
    expect(typesOf(later.frames)).toEqual([frameTypes.pong]); // Of what is over nothing is kept.
  });

  it("G3 is told on every control connection of that caller, since the agent may not know which are lost, and on no other caller's", async () => {
    const { agent, clientId, caller, stream } = await lonelyStream(3);
    const [old, now] = [
      await rawConnection(agent.target, "control", clientId),
      await rawConnection(agent.target, "control", clientId),
    ];
    const other = await rawConnection(agent.target, "control", newClientId());
    stream.endByForce(displaced());
    await eventually(() => caller.frames.length > 0 && old.frames.length > 0 && now.frames.length > 0);
    ping(other.socket);
    await eventually(() => other.frames.length > 0);
    expect(typesOf(other.frames)).toEqual([frameTypes.pong]);
    expect(typesOf(caller.frames)).toEqual([frameTypes.end]);
    expect(typesOf(old.frames)).toEqual([frameTypes.streamEnd]);
    expect(typesOf(now.frames)).toEqual([frameTypes.streamEnd]);
  });

  it("is not told on the control connection to an older caller, which numbers no streams: it has END", async () => {
    const { agent, clientId, caller, stream } = await lonelyStream(0);
    const control = await rawConnection(agent.target, "control", clientId);
    stream.endByForce(displaced());
    await eventually(() => caller.frames.length > 0);
    ping(control.socket);
    await eventually(() => control.frames.length > 0);
    expect(typesOf(control.frames)).toEqual([frameTypes.pong]);
    expect(typesOf(caller.frames)).toEqual([frameTypes.end]);
  });

  it("G2 lets a caller go that does not read its control connection, before what it is told fills the agent's memory", async () => {
    const opened: AgentStream[] = [];
    using agent = await listening(async (stream) => {
      opened.push(stream);
      await stream.callerEnd;
    });
    const clientId = newClientId();
    const control = await rawConnection(agent.target, "control", clientId);
    control.socket.pause();
    const metadata = Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`m${at}`, "x".repeat(4_000)]));
    let streams = 0;
    while (!control.isClosed() && streams < 40) {
      const { socket } = await rawConnection(agent.target, "stream", clientId);
      openBy(socket, ++streams);
      await eventually(() => opened.length === streams);
      opened.at(-1)?.endByForce(new AnsweredError("ATTACHMENT_DISPLACED", "long", metadata));
      if (agent.server.connections.proved === 0) break;
      await new Promise((resolve) => setImmediate(resolve));
      if (opened.length > 20) control.socket.resume(); // So that a close is noticed here.
    }
    expect(control.isClosed()).toBe(true);
  });
});

describe("a peer that does not keep to the protocol", () => {
  const endOf = (reason: string): Uint8Array => toBinary(EndSchema, create(EndSchema, { status: { reason } }));

  /** An agent that proves itself, and from there on does only what the test has it do. */
  async function falseAgent() {
    const controls: FramedSocket[] = [];
    const streams: FramedSocket[] = [];
    let calls = 0;
    const server = createServer((raw) => {
      raw.on("error", () => undefined);
      greet(
        raw,
        { token, bootId: "boot-1", features: [] },
        {
          mayEnter: () => undefined,
          settled: () => undefined,
          proved: ({ socket, phase }) => {
            (phase === "control" ? controls : streams).push(socket);
            const frame = (type: number, _payload: Buffer, callId: number): void => {
              if (type !== frameTypes.call) return;
              calls += 1;
              socket.send(frameTypes.reply, Buffer.alloc(0), callId);
            };
            socket.enter(phase, { frame, data: () => undefined, closed: () => undefined });
          },
        },
      );
    });
    await new Promise<void>((resolve) => server.listen(0, host, resolve));
    onTestFinished(() => void server.close());
    const address = server.address();
    if (typeof address !== "object" || address === null) throw new Error("no address");
    const client = new LinkClient({ host, port: address.port, token }, systemClock);
    onTestFinished(() => client.close());
    const over = Promise.withResolvers<Error | undefined>();
    let isOver = false;
    const listener = {
      message: () => undefined,
      data: () => undefined,
      over: (error: Error | undefined) => {
        isOver = true;
        over.resolve(error);
      },
    };
    const stream = await client.open(follow, {}, listener, { within: soon() });
    const [control] = controls;
    if (control === undefined || stream.id === undefined) throw new Error("not opened");
    return {
      client,
      control,
      controls,
      streams,
      id: stream.id,
      isOver: () => isOver,
      over: over.promise,
      calls: () => calls,
    };
  }

  it("G2 an agent may name streams that there are not, as many as it likes: nothing is kept, and nothing ends", async () => {
    const { client, control, controls, isOver } = await falseAgent();
    for (let at = 0; at < 200_000; at += 1) {
      if (!control.send(frameTypes.streamEnd, at % 2 === 0 ? endOf("X") : Buffer.from([0xff]), 1_000 + at)) {
        await control.drained();
      }
    }
    await client.call(AgentService.method.health, {}, { within: soon() });
    expect(controls).toHaveLength(1);
    expect(isOver()).toBe(false);
    expect(client.openStreams).toBe(1);
  });

  it.each([
    ["that gives no reason", endOf("")],
    ["that is no END", Buffer.from([0xff, 0xff])],
  ])("a forced end %s ends the control connection, and is taken for no end of the stream", async (_what, payload) => {
    const { control, controls, id, isOver } = await falseAgent();
    control.send(frameTypes.streamEnd, payload, id);
    await eventually(() => control.isClosed && controls.length === 2); // Made anew: a stream is open.
    expect(isOver()).toBe(false);
  });

  it("G18 after a forced end was told, an END in order does not make it one", async () => {
    const { client, control, streams, id, over } = await falseAgent();
    control.send(frameTypes.streamEnd, endOf("ATTACHMENT_DISPLACED"), id);
    control.send(frameTypes.streamEnd, endOf("SOMETHING_ELSE"), id);
    await client.call(AgentService.method.health, {}, { within: soon() });
    for (const stream of streams) stream.send(frameTypes.end, toBinary(EndSchema, create(EndSchema, {})));
    expect(await over).toMatchObject({ reason: "ATTACHMENT_DISPLACED" });
  });

  it("a caller that says what only an agent says loses its connection", async () => {
    using agent = await listening();
    const control = await rawConnection(agent.target, "control", newClientId());
    control.socket.send(frameTypes.streamEnd, endOf("X"), 1);
    await eventually(() => control.isClosed());
  });
});
