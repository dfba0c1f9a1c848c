import { AgentService } from "@holdfast/api/holdfast/guest/v1/agent_pb";
import {
  ExecutionService,
  OutputChannel,
  StartExecutionResponseSchema,
} from "@holdfast/api/holdfast/guest/v1/execution_pb";
import { type Clock, Deadline, systemClock } from "@holdfast/async";
import { type ExecutionId, isExecutionId, podUidOf, reattachWindowMs } from "@holdfast/contract";
import { type AgentStream, AnsweredError, type CallerEnd, LinkServer, Router } from "@holdfast/guest-link";
import { ManualClock } from "@holdfast/testkit";
import { type ExecutionEvent, type ExecutionWish, GuestLost } from "@holdfast/workspace";
import { describe, expect, it, onTestFinished } from "vitest";
import { guestDialler } from "./linked-guest.ts";

const host = "127.34.0.1";
const token = podUidOf("a pod's uid");
const bootId = "boot-1";

/** A guest that behaves as the test says. */
async function guestThat(behaves: (stream: AgentStream) => Promise<void>, clock: Clock = systemClock) {
  const router = new Router()
    .stream(ExecutionService.method.startExecution, (_request, stream) => behaves(stream))
    .stream(ExecutionService.method.followExecution, (_request, stream) => behaves(stream))
    .unary(AgentService.method.health, async () => {
      throw new AnsweredError("A_NEWER_REASON", "something new");
    });
  const server = new LinkServer({ token, bootId, features: [] }, router, systemClock);
  const port = await server.listen(host, 0);
  const guest = guestDialler(clock).guest({ host, port, podUid: token });
  onTestFinished(() => {
    guest.close();
    server.close();
  });
  return guest;
}

const started = { case: "started", value: { executionId: "x", bootId } } as const;
const say = (stream: AgentStream, event: object) => {
  stream.sendMessage(StartExecutionResponseSchema, { event: { event: event as typeof started } });
};
const segment = (offset: number) => ({
  case: "segment",
  value: { offset: BigInt(offset), channel: OutputChannel.STDOUT },
});
const exited = (outputBytes: number) => ({
  case: "exited",
  value: { outcome: { case: "code", value: 0 }, outputBytes: BigInt(outputBytes) },
});

const wish: ExecutionWish = {
  executionId: idOf("x"),
  command: "true",
  args: [],
  cwd: undefined,
  env: {},
  stdin: undefined,
  timeoutMs: undefined,
  maxOutputBytes: undefined,
  retainOutput: false,
  onDisconnect: "detach",
  drainMs: undefined,
  leftovers: "keep",
};

function idOf(text: string): ExecutionId {
  if (!isExecutionId(text)) throw new Error(text);
  return text;
}

async function all(run: AsyncIterable<ExecutionEvent>): Promise<ExecutionEvent[]> {
  const events: ExecutionEvent[] = [];
  for await (const event of run) events.push(event);
  return events;
}

const never = new AbortController().signal;

describe("a guest that is older than what is asked of it", () => {
  it("is not asked for a command with streamed input, which it would start without any", async () => {
    let starts = 0;
    const guest = await guestThat(async () => {
      starts += 1;
    });
    const run = all(guest.execute({ ...wish, streamedStdin: true }, never));
    await expect(run).rejects.toMatchObject({
      reason: "GUEST_FEATURE_MISSING",
      metadata: { feature: "execution-control" },
    });
    expect(starts).toBe(0);
    expect(guest.liveExecutions).toBe(0);
  });
});

describe("a guest that does not keep to the protocol", () => {
  it.each<[string, (stream: AgentStream) => void]>([
    [
      "repeats bytes",
      (stream) => {
        say(stream, segment(0));
        stream.sendData(Buffer.from("abc"));
        say(stream, segment(1));
      },
    ],
    ["skips bytes without a gap", (stream) => say(stream, segment(5))],
    ["sends bytes that belong nowhere", (stream) => stream.sendData(Buffer.from("abc"))],
    [
      "reports fewer bytes than it sent",
      (stream) => {
        say(stream, segment(0));
        stream.sendData(Buffer.from("abc"));
        say(stream, exited(2));
      },
    ],
    ["calls the stream complete without an exit", () => undefined],
    [
      "ends the command without code or signal",
      (stream) => say(stream, { case: "exited", value: { outputBytes: 0n } }),
    ],
  ])("is not believed when it %s: the outcome is not known", async (_name, misbehave) => {
    const guest = await guestThat(async (stream) => {
      say(stream, started);
      misbehave(stream);
    });
    await expect(all(guest.execute(wish, never))).rejects.toBeInstanceOf(GuestLost);
  });

  it("is not kept a connection for when it says the end but does not end the stream", async () => {
    const over = Promise.withResolvers<CallerEnd>();
    const guest = await guestThat(async (stream) => {
      say(stream, started);
      say(stream, exited(0));
      over.resolve(await stream.callerEnd);
    });
    expect((await all(guest.execute(wish, never))).map(({ t }) => t)).toEqual(["started", "exited"]);
    expect(await over.promise).toEqual({ t: "ended", clientClosed: false });
  });

  it("L44 is given up after the window when every stream breaks as soon as it is open", async () => {
    const clock = new ManualClock();
    let streams = 0;
    const guest = await guestThat(async (stream) => {
      streams += 1;
      say(stream, started);
      await new Promise((resolve) => setImmediate(resolve));
      stream.destroy(new Error("broken by the test"));
    }, clock);
    let failure: unknown;
    const run = all(guest.execute(wish, never)).catch((error) => {
      failure = error;
    });
    let passedMs = 0;
    for (; failure === undefined; passedMs += 250) {
      await clock.advance(250);
    }
    await run;
    expect(failure).toMatchObject({ reason: "EXECUTION_DETACHED", metadata: { started: "true", next_offset: "0" } });
    expect(passedMs).toBeGreaterThanOrEqual(reattachWindowMs);
    expect(streams).toBeGreaterThan(5);
    expect(streams).toBeLessThan(200);
  });

  it("answers with a reason of a newer release: it is passed on as a defect that names it", async () => {
    const guest = await guestThat(async () => undefined);
    await expect(guest.health(new Deadline(systemClock, 5_000))).rejects.toMatchObject({
      reason: "INTERNAL_ERROR",
      metadata: { guest_reason: "A_NEWER_REASON" },
    });
  });
});

describe("a guest that does", () => {
  it("delivers output, gaps and the exit in order", async () => {
    const guest = await guestThat(async (stream) => {
      say(stream, started);
      say(stream, { case: "gap", value: { from: 0n, to: 7n, reason: 1 } });
      say(stream, segment(7));
      stream.sendData(Buffer.from("abc"));
      say(stream, exited(10));
    });
    expect(await all(guest.execute(wish, never))).toMatchObject([
      { t: "started", executionId: "x", bootId, attached: false },
      { t: "gap", from: 0, to: 7, reason: "dropped" },
      { t: "output", stream: "stdout", offset: 7, data: Buffer.from("abc") },
      { t: "exited", exit: { status: { t: "code", code: 0 }, outputBytes: 10, timedOut: false, message: undefined } },
    ]);
  });

  it("starts nothing for a client that is gone before it was asked", async () => {
    let streams = 0;
    const guest = await guestThat(async () => {
      streams += 1;
    });
    const gone = AbortSignal.abort(new Error("gone already"));
    await expect(all(guest.execute(wish, gone))).rejects.toThrow("gone already");
    expect(streams).toBe(0);
  });
});
