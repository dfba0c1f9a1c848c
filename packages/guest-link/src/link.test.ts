import { connect } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import { AgentService } from "@holdfast/api/holdfast/guest/v1/agent_pb";
import { ExecutionService } from "@holdfast/api/holdfast/guest/v1/execution_pb";
import { ConnectionRole, HelloSchema, ProofSchema } from "@holdfast/api/holdfast/guest/v1/link_pb";
import { type Clock, Deadline, systemClock } from "@holdfast/async";
import { linkIdleCloseMs, linkPingEveryMs, linkProtocolVersion, linkUnauthenticatedMax } from "@holdfast/contract";
import { HandClock } from "@holdfast/testkit";
import { describe, expect, it, onTestFinished } from "vitest";
import { frameTypes, writeHeader } from "./frame.ts";
import { isProof, proofOf } from "./handshake-proof.ts";
import { LinkClient } from "./link-client.ts";
import { AnsweredError, LinkLost, NothingSent } from "./link-errors.ts";
import { eventually, host, listening, relay, token } from "./loopback.testing.ts";
import type { AgentStream } from "./stream-agent.ts";

const soon = (ms = 5_000) => new Deadline(systemClock, ms);

function clientOf(target: { host: string; port: number; token: string }, clock: Clock = systemClock): LinkClient {
  const client = new LinkClient(target, clock);
  onTestFinished(() => client.close());
  return client;
}

/** Takes a stream's events, and says when it is over. */
function collector() {
  const over = Promise.withResolvers<Error | undefined>();
  const chunks: Buffer[] = [];
  let messages = 0;
  return {
    listener: {
      message: () => {
        messages += 1;
      },
      data: (bytes: Buffer) => void chunks.push(bytes),
      over: over.resolve,
    },
    over: over.promise,
    bytes: () => Buffer.concat(chunks),
    messages: () => messages,
  };
}

const follow = ExecutionService.method.followExecution;

describe("the handshake", () => {
  it("G1 refuses a caller with another token, and nothing was sent", async () => {
    using agent = await listening();
    const client = clientOf({ ...agent.target, token: "another pod's uid" });
    const error = await client.call(AgentService.method.health, {}, { within: soon() }).catch((cause) => cause);
    expect(error).toBeInstanceOf(NothingSent);
    expect(error.why).toBe("token-refused");
  });

  it("G2 never puts the token on the wire, and proves both sides over both nonces", async () => {
    using agent = await listening();
    using between = await relay(agent.target);
    const client = clientOf({ host, port: between.port, token });
    await client.call(AgentService.method.health, {}, { within: soon() });
    expect(between.up().includes(token)).toBe(false);
    expect(between.down().includes(token)).toBe(false);
    expect(between.up().length).toBeGreaterThan(100);
  });

  it("binds a proof to its side, to the token and to every byte of HELLO and CHALLENGE", () => {
    const hello = Buffer.from("0801", "hex");
    const challenge = Buffer.from("0802", "hex");
    const proof = proofOf("caller", token, hello, challenge);
    // Vector of docs/design/guest-link.md.
    expect(proofOf("caller", "token", hello, challenge).toString("hex")).toMatchInlineSnapshot(
      `"0c37ca1337e399203181947019073fb8471bade66fdc277c1bf9412c6e1dbd08"`,
    );
    expect(isProof(proof, proof)).toBe(true);
    expect(isProof(proof, proofOf("agent", token, hello, challenge))).toBe(false);
    expect(isProof(proof, proofOf("caller", "other", hello, challenge))).toBe(false);
    expect(isProof(proof, proofOf("caller", token, Buffer.from("0803", "hex"), challenge))).toBe(false);
    expect(isProof(proof, proofOf("caller", token, challenge, hello))).toBe(false);
    expect(isProof(proof, proof.subarray(1))).toBe(false);
  });

  it("names the version that the agent speaks when it is another", async () => {
    using agent = await listening();
    const socket = connect(agent.port, host);
    const chunks: Buffer[] = [];
    socket.on("data", (chunk) => chunks.push(chunk));
    const closed = new Promise((resolve) => socket.on("close", resolve));
    const hello = create(HelloSchema, {
      protocolVersion: linkProtocolVersion + 1,
      role: ConnectionRole.CONTROL,
      clientNonce: Buffer.alloc(32),
    });
    socket.write(frameOf(frameTypes.hello, toBinary(HelloSchema, hello)));
    await closed;
    const answer = Buffer.concat(chunks);
    expect(answer[4]).toBe(frameTypes.refused);
    expect(answer.toString("latin1")).toContain(`speaks version ${linkProtocolVersion}`);
  });

  it("loses nothing that a caller sends in one piece with its proof", async () => {
    using agent = await listening();
    const socket = connect(agent.port, host);
    onTestFinished(() => void socket.destroy());
    const received: Buffer[] = [];
    socket.on("data", (chunk) => received.push(chunk));
    const hello = toBinary(
      HelloSchema,
      create(HelloSchema, {
        protocolVersion: linkProtocolVersion,
        role: ConnectionRole.CONTROL,
        clientNonce: Buffer.alloc(32),
      }),
    );
    socket.write(frameOf(frameTypes.hello, hello));
    await eventually(() => Buffer.concat(received).length > 5);
    const challenge = Buffer.concat(received).subarray(5);
    received.length = 0;
    const proof = toBinary(ProofSchema, create(ProofSchema, { mac: proofOf("caller", token, hello, challenge) }));
    const ping = Buffer.alloc(9);
    writeHeader(ping, "control", frameTypes.ping, 0, 7);
    socket.write(Buffer.concat([frameOf(frameTypes.proof, proof), ping]));
    const pong = Buffer.alloc(9);
    writeHeader(pong, "control", frameTypes.pong, 0, 7);
    await eventually(() => Buffer.concat(received).subarray(-9).equals(pong));
  });

  it("G2 keeps at most 64 connections that have not proved the token, and says so to the next", async () => {
    using agent = await listening();
    const held = Array.from({ length: linkUnauthenticatedMax }, () => connect(agent.port, host));
    onTestFinished(() => {
      for (const socket of held) socket.destroy();
    });
    await eventually(() => agent.server.connections.unproved === linkUnauthenticatedMax);
    const client = clientOf(agent.target);
    const error = await client.call(AgentService.method.health, {}, { within: soon() }).catch((cause) => cause);
    expect(error).toMatchObject({ name: "NothingSent", why: "capacity" });
    held[0]?.destroy();
    await eventually(() => agent.server.connections.unproved < linkUnauthenticatedMax);
    await client.call(AgentService.method.health, {}, { within: soon() });
  });

  it("G2 gives a connection 10 s to prove the token, however slowly it sends", async () => {
    const clock = new HandClock();
    using agent = await listening(undefined, clock);
    const socket = connect(agent.port, host);
    const closed = new Promise((resolve) => socket.on("close", resolve));
    const said: Buffer[] = [];
    socket.on("data", (bytes) => said.push(bytes));
    await eventually(() => agent.server.connections.unproved === 1);
    const others = clientOf(agent.target);
    const aCallOfAnother = () => others.call(AgentService.method.health, {}, { within: soon() });
    socket.write(frameOf(frameTypes.hello, Buffer.alloc(100)).subarray(0, 5)); // A HELLO whose payload never comes whole.
    for (let passedMs = 0; passedMs < 9_500; passedMs += 500) {
      socket.write("\0");
      await aCallOfAnother(); // The byte was there before.
      clock.pass(500);
    }
    clock.pass(499);
    await aCallOfAnother();
    expect([agent.server.connections.unproved, said]).toEqual([1, []]);
    clock.pass(1);
    await closed;
    expect(Buffer.concat(said).toString("latin1")).toContain("not authenticated within 10000 ms");
    expect(agent.server.connections.unproved).toBe(0);
  });

  it("G2 drops a stranger's bytes at the first that have no place", async () => {
    using agent = await listening();
    const socket = connect(agent.port, host);
    socket.on("error", () => undefined);
    socket.write(Buffer.alloc(1024 * 1024, 0x41));
    await new Promise((resolve) => socket.on("close", resolve));
    expect(agent.server.connections).toEqual({ unproved: 0, proved: 0 });
  });

  it("fails with nothing sent where nobody listens, and where the name does not resolve", async () => {
    const nobody = clientOf({ host, port: 1, token });
    await expect(nobody.call(AgentService.method.health, {}, { within: soon() })).rejects.toMatchObject({
      name: "NothingSent",
      why: "no-connection",
    });
    const nameless = clientOf({ host: "no-such-host.invalid", port: 1, token });
    await expect(nameless.call(AgentService.method.health, {}, { within: soon() })).rejects.toMatchObject({
      name: "NothingSent",
      why: "name-unresolvable",
    });
  });
});

describe("calls", () => {
  it("run many at once over one connection, each with the agent's boot id", async () => {
    using agent = await listening();
    using between = await relay(agent.target);
    const client = clientOf({ host, port: between.port, token });
    const replies = await Promise.all(
      Array.from({ length: 200 }, () => client.call(AgentService.method.health, {}, { within: soon() })),
    );
    expect(replies.every((reply) => reply.serving)).toBe(true);
    expect(between.connections).toBe(1);
  });

  it("tell the agent to give up at the caller's deadline and at its cancellation", async () => {
    using agent = await listening();
    const client = clientOf(agent.target);
    await expect(client.call(AgentService.method.probe, {}, { within: soon(50) })).rejects.toThrow(/deadline/);
    await eventually(() => agent.gaveUp === 1);
    const cancel = new AbortController();
    const call = client.call(
      AgentService.method.probe,
      {},
      { within: new Deadline(systemClock, 5_000, cancel.signal) },
    );
    await client.call(AgentService.method.health, {}, { within: soon() });
    cancel.abort(new Error("cancelled by the test"));
    await expect(call).rejects.toThrow("cancelled by the test");
    await eventually(() => agent.gaveUp === 2);
  });

  it("fail as lost, not as nothing sent, when the connection ends after the call went out", async () => {
    using agent = await listening();
    using between = await relay(agent.target);
    const client = clientOf({ host, port: between.port, token });
    await client.call(AgentService.method.health, {}, { within: soon() });
    const call = client.call(AgentService.method.probe, {}, { within: soon() });
    await client.call(AgentService.method.health, {}, { within: soon() });
    between.cut();
    await expect(call).rejects.toBeInstanceOf(LinkLost);
    await eventually(() => agent.gaveUp === 1);
  });

  it("of a method that the agent does not serve are answered so", async () => {
    using agent = await listening();
    const client = clientOf(agent.target);
    const call = client.call(ExecutionService.method.cancelExecution, {}, { within: soon() });
    await expect(call).rejects.toMatchObject({ name: "AnsweredError", reason: "GUEST_FEATURE_MISSING" });
  });
});

describe("streams", () => {
  it("carry messages and bytes in order, then one end", async () => {
    using agent = await listening(async (stream) => {
      for (let at = 0; at < 100; at += 1) stream.sendData(Buffer.from(`${at},`));
    });
    const client = clientOf(agent.target);
    const got = collector();
    await client.open(follow, {}, got.listener, { within: soon() });
    expect(await got.over).toBeUndefined();
    expect(got.bytes().toString()).toBe(Array.from({ length: 100 }, (_, at) => `${at},`).join(""));
  });

  it("G5 are held back by TCP alone when the caller does not read, and others go on", async () => {
    let sent = 0;
    const piece = Buffer.alloc(64 * 1024);
    using agent = await listening(async (stream: AgentStream) => {
      for (; sent < 256 * 1024 * 1024; sent += piece.length) {
        if (!stream.sendData(piece)) await stream.drained();
      }
    });
    const client = clientOf(agent.target);
    const got = collector();
    const slow = await client.open(follow, {}, { ...got.listener, data: () => slow.pause() }, { within: soon() });
    await eventually(() => sent > 0);
    let before = -1;
    await eventually(() => {
      const still = before === sent;
      before = sent;
      return still && sent > 1024 * 1024;
    });
    expect(sent).toBeLessThan(64 * 1024 * 1024);
    await client.call(AgentService.method.health, {}, { within: soon() });
    slow.end({ clientClosed: false });
  });

  it("tell the agent a wished end from a lost connection", async () => {
    const ends: unknown[] = [];
    using agent = await listening(async (stream) => {
      ends.push(await stream.callerEnd);
    });
    using between = await relay(agent.target);
    const client = clientOf({ host, port: between.port, token });
    for (const clientClosed of [true, false]) {
      const stream = await client.open(follow, {}, collector().listener, { within: soon() });
      stream.end({ clientClosed });
    }
    await eventually(() => ends.length === 2);
    const got = collector();
    await client.open(follow, {}, got.listener, { within: soon() });
    await client.call(AgentService.method.health, {}, { within: soon() });
    between.cut();
    await eventually(() => ends.length === 3);
    expect(ends).toEqual([{ t: "ended", clientClosed: true }, { t: "ended", clientClosed: false }, { t: "lost" }]);
    expect(await got.over).toBeInstanceOf(LinkLost);
  });

  it("end with the handler's answer, or with a defect that says so", async () => {
    let failure: Error = new AnsweredError("EXECUTION_NOT_FOUND", "no such thing", { execution_id: "x" });
    using agent = await listening(async () => {
      throw failure;
    });
    const client = clientOf(agent.target);
    const first = collector();
    await client.open(follow, {}, first.listener, { within: soon() });
    expect(await first.over).toMatchObject({ reason: "EXECUTION_NOT_FOUND", metadata: { execution_id: "x" } });
    failure = new Error("boom");
    const second = collector();
    await client.open(follow, {}, second.listener, { within: soon() });
    expect(await second.over).toMatchObject({ reason: "INTERNAL_ERROR" });
  });

  it("beyond the size of a message are refused before anything is sent", async () => {
    using agent = await listening();
    const client = clientOf(agent.target);
    const request = { executionId: "x".repeat(5 * 1024 * 1024) };
    const open = client.open(follow, request, collector().listener, { within: soon() });
    await expect(open).rejects.toMatchObject({ reason: "MESSAGE_TOO_LARGE" });
    expect(agent.server.connections.proved).toBe(0);
  });
});

describe("liveness", () => {
  it("G3 B45 finds a peer that is silent for 45 s, on its streams as well", async () => {
    using agent = await listening(async (stream) => void (await stream.callerEnd));
    using between = await relay(agent.target);
    const clock = new HandClock();
    const client = clientOf({ host, port: between.port, token }, clock);
    const got = collector();
    await client.open(follow, {}, got.listener, { within: soon() });
    for (let ping = 0; ping < 3; ping += 1) {
      const before = between.down().length;
      clock.pass(linkPingEveryMs);
      await eventually(() => between.down().length > before); // Answered: the peer lives, though the stream is silent.
    }
    between.freeze();
    let over = false;
    void got.over.then(() => {
      over = true;
    });
    for (let ping = 0; ping < 2; ping += 1) clock.pass(linkPingEveryMs);
    clock.pass(linkPingEveryMs - 1);
    await new Promise((resolve) => setImmediate(resolve));
    expect(over).toBe(false);
    clock.pass(1); // The third ping.
    clock.pass(0);
    expect(await got.over).toBeInstanceOf(LinkLost);
  });

  it("G3 lets an agent find a caller that is silent for 45 s, and no caller that pings, however slow its reading", async () => {
    const clock = new HandClock();
    const ends: unknown[] = [];
    using agent = await listening(async (stream) => {
      stream.sendData(Buffer.alloc(1024 * 1024)); // Never read: that alone is no sign of death.
      ends.push(await stream.callerEnd);
    }, clock);
    using between = await relay(agent.target);
    const client = clientOf({ host, port: between.port, token });
    const stream = await client.open(
      follow,
      {},
      { ...collector().listener, data: () => stream.pause() },
      { within: soon() },
    );
    for (let quarter = 0; quarter < 12; quarter += 1) {
      clock.pass(15_000);
      await client.call(AgentService.method.health, {}, { within: soon() }); // As a ping would be: heard on the control connection.
    }
    expect(ends).toEqual([]);
    between.freeze();
    for (let step = 0; step < 9; step += 1) clock.pass(5_000);
    await client.call(AgentService.method.health, {}, { within: soon(50) }).catch(() => undefined);
    expect(ends).toEqual([]);
    clock.pass(5_000);
    await eventually(() => ends.length === 1);
    expect(ends).toEqual([{ t: "lost" }]);
    await eventually(() => agent.server.connections.proved === 0);
    expect(clock.pending).toBe(0);
  });

  it("closes idle connections after a minute and keeps no timer then", async () => {
    using agent = await listening();
    const clock = new HandClock();
    const client = clientOf(agent.target, clock);
    await client.call(AgentService.method.health, {}, { within: soon() });
    expect(agent.server.connections.proved).toBe(1);
    clock.pass(linkIdleCloseMs);
    await eventually(() => agent.server.connections.proved === 0);
    await eventually(() => clock.pending === 0);
    await client.call(AgentService.method.health, {}, { within: soon() });
  });
});

function frameOf(type: number, payload: Uint8Array): Buffer {
  const header = Buffer.alloc(5);
  writeHeader(header, "handshake", type as 1, payload.length, 0);
  return Buffer.concat([header, payload]);
}
