import type { Socket } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import { AgentService } from "@holdfast/api/holdfast/guest/v1/agent_pb";
import { ExecutionService, FollowExecutionRequestSchema } from "@holdfast/api/holdfast/guest/v1/execution_pb";
import { Deadline, systemClock } from "@holdfast/async";
import {
  guestDialTimeoutMs,
  linkDialsMax,
  linkIdleCloseMs,
  linkMessageMaxBytes,
  linkPingEveryMs,
  linkSilenceMaxMs,
  linkSparesMax,
} from "@holdfast/contract";
import { HandClock } from "@holdfast/testkit";
import { describe, expect, it } from "vitest";
import { clientOf, type Phase, serve } from "./held-agent.testing.ts";
import { LinkLost, NothingSent } from "./link-errors.ts";

const follow = ExecutionService.method.followExecution;
const { health, probe } = AgentService.method;
const soon = (signal?: AbortSignal) => new Deadline(systemClock, 5_000, signal);
const silent = { message: () => undefined, data: () => undefined, over: () => undefined };

/** As `expect.poll`, which looks every 50 ms. */
const until = <T>(state: () => T) => expect.poll(state, { interval: 1 });

/** A client of an agent that serves at once, and what each connection turned out to be. */
async function served(clock = new HandClock()) {
  const phases = new Map<Socket, Phase>();
  const agent: { serves: boolean; refuses?: "capacity" | "token-refused" } = { serves: true };
  const stage = await clientOf((socket) => {
    if (agent.refuses === "capacity") void serve(socket, "no room");
    else if (agent.refuses === "token-refused") void serve(socket, undefined, "another pod's uid");
    else if (!agent.serves) socket.destroy();
    else void serve(socket).then((phase) => phases.set(socket, phase));
  }, clock);
  const standing = (phase: Phase): Socket[] =>
    stage.made.filter((socket) => !socket.destroyed && phases.get(socket) === phase);
  return { ...stage, clock, agent, standing };
}

/** Lets time pass by pings, each answered before the next. */
async function passing({ clock, standing }: Awaited<ReturnType<typeof served>>, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += linkPingEveryMs) {
    const [control] = standing("control");
    const before = control?.bytesWritten ?? 0;
    clock.pass(linkPingEveryMs);
    await until(() => control === undefined || control.destroyed || control.bytesWritten > before).toBe(true);
    for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve)); // The pong is read.
  }
}

const overOf = () => {
  const over = Promise.withResolvers<Error | undefined>();
  return { over: over.promise, listener: { ...silent, over: over.resolve } };
};

describe("the connections of a client", () => {
  it("are made ahead for two streams while it is used, whenever one is taken or lost, and go when it is idle", async () => {
    const { client, counts, clock, standing } = await served();
    const stream = await client.open(follow, {}, silent, { within: soon() });
    await until(() => standing("stream").length).toBe(1 + linkSparesMax);
    const second = await client.open(follow, {}, silent, { within: soon() });
    await until(() => standing("stream").length).toBe(2 + linkSparesMax);
    for (const spare of standing("stream").slice(2)) spare.destroy();
    await until(() => counts.connections).toBe(1 + 2);
    const third = await client.open(follow, {}, silent, { within: soon() });
    await until(() => standing("stream").length).toBe(3 + linkSparesMax);
    expect(standing("control")).toHaveLength(1);
    for (const open of [stream, second, third]) open.end({ clientClosed: true });
    await until(() => counts.connections).toBe(1 + linkSparesMax);
    clock.pass(linkIdleCloseMs);
    await until(() => counts.connections).toBe(0);
  });

  it("stand while a stream does, however long it is silent", async () => {
    const stage = await served();
    const { client, made, standing } = stage;
    await client.open(follow, {}, silent, { within: soon() });
    await until(() => standing("stream").length).toBe(1 + linkSparesMax);
    await client.call(health, {}, { within: soon() }); // By then the client has them, too.
    await passing(stage, 2 * linkIdleCloseMs);
    expect(made.filter(({ destroyed }) => destroyed)).toHaveLength(0);
    expect(made).toHaveLength(2 + linkSparesMax);
  });

  it("are not closed as idle under a call that began before, or while another ended", async () => {
    const stage = await served();
    const { client, standing, made } = stage;
    await client.call(health, {}, { within: soon() });
    await passing(stage, linkIdleCloseMs - linkPingEveryMs);
    const leave = new AbortController();
    const call = client.call(probe, {}, { within: soon(leave.signal) });
    await client.call(health, {}, { within: soon() });
    await passing(stage, 2 * linkIdleCloseMs);
    expect(standing("control")).toHaveLength(1);
    expect(made).toHaveLength(1);
    leave.abort(new Error("left by the test"));
    await expect(call).rejects.toThrow("left by the test");
  });

  it("serve the next stream where one that needs more than the agent knows was not opened", async () => {
    const { client, made, standing } = await served();
    const opening = client.open(follow, {}, silent, { within: soon(), needs: "execution-control" });
    await expect(opening).rejects.toMatchObject({ reason: "GUEST_FEATURE_MISSING" });
    await client.open(follow, {}, silent, { within: soon() });
    await until(() => standing("stream").length).toBe(1 + linkSparesMax);
    expect(made).toHaveLength(2 + linkSparesMax);
  });

  it("are made anew for a stream that is opened in the moment in which they are closed as idle", async () => {
    const { client, clock, counts, standing } = await served();
    const stream = await client.open(follow, {}, silent, { within: soon() });
    await until(() => standing("stream").length).toBe(1 + linkSparesMax);
    stream.end({ clientClosed: true });
    await until(() => counts.connections).toBe(1 + linkSparesMax);
    clock.pass(linkIdleCloseMs);
    const next = await client.open(follow, {}, silent, { within: soon() });
    expect(next.isClosed).toBe(false);
  });

  it("are not forgotten because one from before is closed late", async () => {
    const { client, clock, standing, made } = await served();
    await client.call(health, {}, { within: soon() });
    clock.pass(linkIdleCloseMs);
    await client.call(health, {}, { within: soon() });
    await client.call(health, {}, { within: soon() });
    expect(standing("control")).toHaveLength(1);
    expect(made).toHaveLength(2);
  });

  it("are made anew for a call after the control connection was lost", async () => {
    const { client, counts, standing } = await served();
    await client.call(health, {}, { within: soon() });
    standing("control")[0]?.destroy();
    await until(() => counts.connections).toBe(0);
    await client.call(health, {}, { within: soon() });
  });

  it("leave no timer behind where nobody answered", async () => {
    const { client, clock, agent } = await served();
    agent.serves = false;
    await expect(client.call(health, {}, { within: soon() })).rejects.toMatchObject({ why: "no-connection" });
    expect(clock.pending).toBe(0);
  });
});

describe("connections that come late", () => {
  it("G2 are kept for two streams, and no more, where those who asked for them have gone", async () => {
    const held: Socket[] = [];
    const clock = new HandClock();
    let holds = true;
    const { client, counts } = await clientOf((socket) => {
      if (holds) held.push(socket);
      else void serve(socket);
    }, clock);
    const gone = new AbortController();
    const asked = 5;
    const opening = Array.from({ length: asked }, () => client.open(follow, {}, silent, { within: soon(gone.signal) }));
    await until(() => held.length).toBe(asked + 1);
    gone.abort(new Error("gone"));
    for (const open of opening) await expect(open).rejects.toThrow("gone");
    holds = false;
    for (const socket of held) void serve(socket);
    await until(() => counts.connections).toBe(1 + linkSparesMax);
  });
});

describe("a client that is not answered", () => {
  it("ends a call as soon as its caller goes", async () => {
    const { client } = await clientOf(() => undefined, new HandClock());
    const gone = new AbortController();
    const call = client.call(health, {}, { within: soon(gone.signal) });
    gone.abort(new Error("gone"));
    await expect(call).rejects.toThrow("gone");
  });

  it("tells all who wait at the end of one dial's time, also those whose turn had not come", async () => {
    const clock = new HandClock();
    const held: Socket[] = [];
    const { client } = await clientOf((socket) => void held.push(socket), clock);
    const opening = Array.from({ length: linkDialsMax + 8 }, () =>
      client.open(follow, {}, silent, { within: soon() }).catch((error: unknown) => error),
    );
    await until(() => held.length).toBe(linkDialsMax + 1);
    clock.pass(guestDialTimeoutMs);
    for (const error of await Promise.all(opening)) expect(error).toMatchObject({ why: "no-connection" });
    expect(held).toHaveLength(linkDialsMax + 1);
  });
});

describe("a client that is closed", () => {
  it("ends its streams as lost, its dials at once, and dials no more; no timer is left", async () => {
    const { client, clock, counts, made, agent } = await served();
    const { over, listener } = overOf();
    await client.open(follow, {}, listener, { within: soon() });
    await until(() => counts.connections).toBe(2 + linkSparesMax);
    const call = client.call(probe, {}, { within: soon() });
    call.catch(() => undefined);
    await client.call(health, {}, { within: soon() });
    agent.serves = false;
    client.close();
    expect(await over).toBeInstanceOf(LinkLost);
    await expect(call).rejects.toBeInstanceOf(LinkLost);
    await until(() => counts.connections).toBe(0);
    const dialled = made.length;
    await expect(client.call(health, {}, { within: soon() })).rejects.toMatchObject({ why: "closed" });
    await expect(client.open(follow, {}, silent, { within: soon() })).rejects.toMatchObject({ why: "closed" });
    expect(made).toHaveLength(dialled);
    expect(clock.pending).toBe(0);
  });

  it("does not wait for a dial that is under way", async () => {
    const { client, counts } = await clientOf(() => undefined, new HandClock());
    const call = client.call(health, {}, { within: soon() });
    call.catch(() => undefined);
    await until(() => counts.connections).toBe(1);
    client.close();
    await expect(call).rejects.toBeInstanceOf(NothingSent);
    await until(() => counts.connections).toBe(0);
  });
});

describe("G3 a stream whose control connection is lost", () => {
  /** A stream that stands, and whose control connection was lost. */
  async function lost(servesAgain: boolean, refuses?: "capacity" | "token-refused") {
    const stage = await served();
    const { over, listener } = overOf();
    await stage.client.open(follow, {}, listener, { within: soon() });
    await until(() => stage.standing("stream").length).toBe(1 + linkSparesMax);
    stage.agent.serves = servesAgain;
    if (refuses !== undefined) stage.agent.refuses = refuses;
    const before = stage.made.length;
    stage.standing("control")[0]?.destroy();
    let isOver = false;
    void over.then(() => {
      isOver = true;
    });
    return { ...stage, over, before, isOver: () => isOver };
  }

  it("has another made for it, and goes on", async () => {
    const { standing, isOver } = await lost(true);
    await until(() => standing("control").length).toBe(1);
    expect(isOver()).toBe(false);
  });

  it("is tried for once a second while nobody answers, and goes on when somebody does", async () => {
    const { made, before, clock, agent, standing, isOver, counts } = await lost(false);
    const streams = 1 + linkSparesMax;
    for (let second = 1; second <= 10; second += 1) {
      await until(() => [made.length - before, counts.connections]).toEqual([second, streams]);
      clock.pass(999);
      expect(made.length - before).toBe(second);
      clock.pass(1);
    }
    agent.serves = true; // For the try that was just begun.
    await until(() => standing("control").length).toBe(1);
    expect(isOver()).toBe(false);
  });

  it("leaves no timer behind when the client is closed while it waits for the next try", async () => {
    const { client, clock, made, before, counts, over } = await lost(false);
    await until(() => [made.length - before, counts.connections]).toEqual([1, 1 + linkSparesMax]);
    client.close();
    await over;
    expect(clock.pending).toBe(0);
  });

  it("is tried for also where the guest has no room just now", async () => {
    const { agent, clock, counts, standing, made, before, isOver } = await lost(false, "capacity");
    await until(() => [made.length - before, counts.connections]).toEqual([1, 1 + linkSparesMax]);
    delete agent.refuses;
    agent.serves = true;
    clock.pass(1_000);
    await until(() => standing("control").length).toBe(1);
    expect(isOver()).toBe(false);
  });

  it("is over at once where another guest is at the address now", async () => {
    const { over } = await lost(false, "token-refused");
    expect(await over).toMatchObject({ name: "LinkLost", cause: { cause: { why: "token-refused" } } });
  });

  it("is over after 45 s in which nobody answered", async () => {
    const { over, clock, counts, isOver } = await lost(false);
    const streams = 1 + linkSparesMax;
    for (let second = 0; second < linkSilenceMaxMs / 1_000 - 1; second += 1) {
      await until(() => counts.connections).toBe(streams);
      clock.pass(1_000);
    }
    expect(isOver()).toBe(false);
    clock.pass(1_000);
    expect(await over).toMatchObject({
      name: "LinkLost",
      cause: { message: "the guest cannot be reached any more" },
    });
  });
});

describe("the size of what is opened", () => {
  it("is bounded so that it fits with its envelope, and what is larger is refused before a connection is made", async () => {
    const limit = linkMessageMaxBytes - 1024;
    const overhead =
      toBinary(
        FollowExecutionRequestSchema,
        create(FollowExecutionRequestSchema, { executionId: "x".repeat(3_000_000) }),
      ).length - 3_000_000;
    const { client, made } = await served();
    const tooLarge = client.open(follow, { executionId: "x".repeat(limit - overhead + 1) }, silent, { within: soon() });
    await expect(tooLarge).rejects.toMatchObject({
      reason: "MESSAGE_TOO_LARGE",
      metadata: { bytes: String(limit + 1), limit: String(limit) },
    });
    expect(made).toEqual([]);
    const widest = client.under(Number.MAX_SAFE_INTEGER);
    const stream = await widest.open(follow, { executionId: "x".repeat(limit - overhead) }, silent, { within: soon() });
    stream.end({ clientClosed: true });
  });
});
