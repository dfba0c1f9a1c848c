import { AgentService } from "@holdfast/api/holdfast/guest/v1/agent_pb";
import { ExecutionService } from "@holdfast/api/holdfast/guest/v1/execution_pb";
import { Deadline, systemClock } from "@holdfast/async";
import { linkLastSignMs } from "@holdfast/contract";
import { HandClock } from "@holdfast/testkit";
import { describe, expect, it, onTestFinished } from "vitest";
import { LinkClient } from "./link-client.ts";
import { LinkLost, NothingSent } from "./link-errors.ts";
import { eventually, host, listening, relay, token } from "./loopback.testing.ts";
import type { AgentStream } from "./stream-agent.ts";

const follow = ExecutionService.method.followExecution;
const soon = () => new Deadline(systemClock, 5_000);

/** A stream to an agent behind a relay that can be frozen, whose client is then retired. */
async function retired(serve: (stream: AgentStream) => Promise<void>, readsOn = true) {
  const agent = await listening(serve);
  const between = await relay(agent.target);
  onTestFinished(() => {
    between[Symbol.dispose]();
    agent[Symbol.dispose]();
  });
  const clock = new HandClock();
  const client = new LinkClient({ host, port: between.port, token }, clock);
  onTestFinished(() => client.close());
  const over = Promise.withResolvers<Error | undefined>();
  let bytes = 0;
  const listener = {
    message: () => undefined,
    data: (data: Buffer) => {
      bytes += data.length;
      if (!readsOn) stream.pause();
    },
    over: over.resolve,
  };
  const stream = await client.open(follow, {}, listener, { within: soon() });
  await client.call(AgentService.method.health, {}, { within: soon() });
  return { agent, between, clock, client, stream, over: over.promise, bytes: () => bytes };
}

describe("a client of a guest whose pod was seen gone", () => {
  it("B18 opens no stream any more, and still delivers what was sent on those that stand, to its end", async () => {
    const size = 3 * 1024 * 1024;
    const { clock, client, stream, over, bytes } = await retired(async (agent) => {
      agent.sendData(Buffer.alloc(size));
    }, false);
    await eventually(() => bytes() > 0);
    client.retire();
    await expect(client.open(follow, {}, silent, { within: soon() })).rejects.toMatchObject({ why: "closed" });
    await new Promise((resolve) => setImmediate(resolve));
    await client.call(AgentService.method.health, {}, { within: soon() }); // After its sign of life, on the same connection.
    clock.pass(linkLastSignMs);
    expect(bytes()).toBeLessThan(size);
    const reading = setInterval(() => stream.resume(), 1);
    onTestFinished(() => clearInterval(reading));
    expect(await over).toBeUndefined();
    expect(bytes()).toBe(size);
  });

  it("B18 ends its streams 5 s later where nobody answers any more, though no connection was closed", async () => {
    const { between, clock, client, over } = await retired(async (agent) => void (await agent.callerEnd));
    between.freeze();
    client.retire();
    await new Promise((resolve) => setImmediate(resolve)); // By then it has asked for a sign.
    clock.pass(linkLastSignMs - 1);
    client.retire(); // Said again: the time runs from the first.
    await new Promise((resolve) => setImmediate(resolve));
    let isOver = false;
    void over.then(() => (isOver = true));
    // Many more turns of the loop than an end takes to be told.
    for (let turn = 0; turn < 100; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(isOver).toBe(false);
    clock.pass(1);
    expect(await over).toBeInstanceOf(LinkLost);
  });

  it("still makes calls, which may tell what became of it", async () => {
    const { client } = await retired(async (agent) => void (await agent.callerEnd));
    client.retire();
    await client.call(AgentService.method.health, {}, { within: soon() });
    await expect(client.open(follow, {}, silent, { within: soon() })).rejects.toBeInstanceOf(NothingSent);
  });
});

const silent = { message: () => undefined, data: () => undefined, over: () => undefined };
