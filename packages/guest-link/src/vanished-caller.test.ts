import { readFileSync } from "node:fs";
import { AgentService } from "@holdfast/api/holdfast/guest/v1/agent_pb";
import { ExecutionService } from "@holdfast/api/holdfast/guest/v1/execution_pb";
import { Deadline, systemClock } from "@holdfast/async";
import { linkPingEveryMs } from "@holdfast/contract";
import { HandClock } from "@holdfast/testkit";
import { describe, expect, it, onTestFinished } from "vitest";
import { frameTypes } from "./frame.ts";
import type { FramedSocket } from "./framed-socket.ts";
import { dial, newClientId } from "./handshake-caller.ts";
import { LinkClient } from "./link-client.ts";
import { eventually, listening } from "./loopback.testing.ts";

const nothing = Buffer.alloc(0);

/** A proved control connection that does only what the test has it do. */
async function controlOf(
  target: { readonly host: string; readonly port: number; readonly token: string },
  clientId: Uint8Array,
) {
  const frames: number[] = [];
  let closed = false;
  const listener = {
    frame: (type: number) => void frames.push(type),
    data: () => undefined,
    closed: () => {
      closed = true;
    },
  };
  const { socket } = await dial(target, "control", clientId, () => listener, new AbortController().signal);
  onTestFinished(() => socket.destroy());
  return { socket, frames, isClosed: () => closed };
}

function ping(socket: FramedSocket): void {
  socket.send(frameTypes.ping, nothing);
}

/** What the kernel waits for on each established connection that has this port at one end: 2 is a keep-alive probe. */
function kernelTimersOf(port: number): readonly { readonly side: "agent" | "caller"; readonly timer: string }[] {
  const hex = port.toString(16).toUpperCase().padStart(4, "0");
  return readFileSync("/proc/net/tcp", "utf8")
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , , state]) => state === "01")
    .flatMap(([, local = "", remote = "", , , timer = ""]) => [
      ...(local.endsWith(`:${hex}`) ? [{ side: "agent" as const, timer: timer.slice(0, 2) }] : []),
      ...(remote.endsWith(`:${hex}`) ? [{ side: "caller" as const, timer: timer.slice(0, 2) }] : []),
    ]);
}

describe("a caller that is gone without a word", () => {
  it("G3 is found on each of its control connections, also when it has made another since", async () => {
    const clock = new HandClock();
    using agent = await listening(undefined, clock);
    const clientId = newClientId();
    await controlOf(agent.target, clientId); // Its machine lost the network, and it never learnt.
    const now = await controlOf(agent.target, clientId);
    await eventually(() => agent.server.connections.proved === 2);
    for (let step = 1; step <= 5; step += 1) {
      ping(now.socket);
      await eventually(() => now.frames.length === step);
      clock.pass(linkPingEveryMs);
    }
    await eventually(() => agent.server.connections.proved === 1);
    expect(now.isClosed()).toBe(false);
  });

  it("G3 is probed by the kernel on every connection, from both ends, however silent it may rightly be", async () => {
    using agent = await listening(async (stream) => void (await stream.callerEnd));
    const client = new LinkClient(agent.target, systemClock);
    onTestFinished(() => client.close());
    using within = new Deadline(systemClock, 5_000);
    await client.call(AgentService.method.health, {}, { within });
    const listener = { message: () => undefined, data: () => undefined, over: () => undefined };
    await client.open(ExecutionService.method.followExecution, {}, listener, { within });
    // With what was sent acknowledged, nothing else waits.
    await eventually(() => {
      const timers = kernelTimersOf(agent.port);
      return timers.length >= 4 && timers.every(({ timer }) => timer === "02");
    });
    expect(new Set(kernelTimersOf(agent.port).map(({ side }) => side))).toEqual(new Set(["agent", "caller"]));
  });
});

describe("a caller that pings and does not read", () => {
  it("G2 is let go before its answers fill the agent's memory", async () => {
    using agent = await listening();
    const { socket } = await controlOf(agent.target, newClientId());
    socket.pause();
    let sent = 0;
    for (; sent < 3_000_000 && agent.server.connections.proved > 0; sent += 1) {
      ping(socket);
      if (sent % 10_000 === 0) await socket.drained().catch(() => undefined); // Closed, which ends the loop.
    }
    expect(agent.server.connections.proved).toBe(0);
  });
});
