import { createServer, type Socket } from "node:net";
import { AgentService } from "@holdfast/api/holdfast/guest/v1/agent_pb";
import { ExecutionService } from "@holdfast/api/holdfast/guest/v1/execution_pb";
import { Deadline, systemClock } from "@holdfast/async";
import { describe, expect, it, onTestFinished } from "vitest";
import { ControlAgent } from "./control-agent.ts";
import { greet, type ProvedCaller } from "./handshake-agent.ts";
import { LinkClient } from "./link-client.ts";
import { NothingSent } from "./link-errors.ts";
import { host, token } from "./loopback.testing.ts";
import { Router } from "./router.ts";
import { AgentStream } from "./stream-agent.ts";

const router = new Router()
  .unary(AgentService.method.health, async () => ({ serving: true, bootId: "boot-1" }))
  .stream(ExecutionService.method.followExecution, async (_request, stream) => void (await stream.callerEnd));
const identity = { token, bootId: "boot-1", features: [] };
const follow = ExecutionService.method.followExecution;
const silent = { message: () => undefined, data: () => undefined, over: () => undefined };
const soon = () => new Deadline(systemClock, 5_000);

/** Serves one connection as an agent does. `full`: is turned away for want of room once it has proved the token. */
function serve(socket: Socket, full?: string): void {
  const serves = ({ socket: framed, phase }: ProvedCaller): void => {
    const needs = { router, bootId: "boot-1", clock: systemClock, tellForced: () => undefined };
    if (phase === "control")
      framed.enter(phase, new ControlAgent(framed, router, "boot-1", systemClock, () => undefined));
    else framed.enter(phase, new AgentStream(framed, needs, () => undefined));
  };
  greet(socket, identity, { mayEnter: () => full, proved: serves, settled: () => undefined });
}

/** A client of an agent that takes each connection as the test says; a stream's is made before the control connection. */
async function clientOf(onConnection: (socket: Socket, nth: number) => void) {
  let count = 0;
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    count += 1;
    onConnection(socket, count);
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("no address");
  const counts = { connections: 0 };
  const client = new LinkClient({ host, port: address.port, token, counts }, systemClock);
  onTestFinished(() => {
    client.close();
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { client, counts };
}

const closeOf = (socket: Socket): Promise<void> => new Promise((resolve) => socket.once("close", () => resolve()));

describe("a stream whose control connection does not come about", () => {
  it("G2 is not opened, and its own connection is let go", async () => {
    const streamClosed = Promise.withResolvers<void>();
    const { client } = await clientOf((socket, nth) => {
      if (nth === 1) void closeOf(socket).then(streamClosed.resolve);
      serve(socket, nth === 1 ? undefined : "no room for this one");
    });
    await expect(client.open(follow, {}, silent, { within: soon() })).rejects.toMatchObject({ why: "capacity" });
    await streamClosed.promise;
  });
});

describe("a stream whose own connection does not last until it is opened", () => {
  it("proves that nothing was sent, where it is closed while the control connection is made", async () => {
    const held = Promise.withResolvers<Socket>();
    const streamGone = Promise.withResolvers<void>();
    const { client, counts } = await clientOf((socket, nth) => {
      if (nth === 2) held.resolve(socket);
      else {
        greet(socket, identity, {
          mayEnter: () => undefined,
          proved: ({ socket: framed }) => framed.finish(),
          settled: () => undefined,
        });
        void closeOf(socket).then(streamGone.resolve);
      }
    });
    const opening = client.open(follow, {}, silent, { within: soon() });
    opening.catch(() => undefined);
    const control = await held.promise;
    await streamGone.promise;
    await expect.poll(() => counts.connections).toBe(1);
    serve(control);
    await expect(opening).rejects.toBeInstanceOf(NothingSent);
  });

  it("B57 is no unhandled failure, where it is refused before the control connection is", async () => {
    const held = Promise.withResolvers<Socket>();
    const { client, counts } = await clientOf((socket, nth) => {
      if (nth === 2) held.resolve(socket);
      else socket.destroy();
    });
    const opening = client.open(follow, {}, silent, { within: soon() });
    opening.catch(() => undefined);
    const control = await held.promise;
    await expect.poll(() => counts.connections).toBe(1);
    control.destroy();
    await expect(opening).rejects.toMatchObject({ why: "no-connection" });
  });
});
