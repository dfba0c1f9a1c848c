import { createServer, type Socket } from "node:net";
import { ExecutionService } from "@holdfast/api/holdfast/guest/v1/execution_pb";
import { Deadline, systemClock } from "@holdfast/async";
import { linkDialsMax } from "@holdfast/contract";
import { expect, it, onTestFinished } from "vitest";
import { LinkClient } from "./link-client.ts";
import { eventually, host, listening, token } from "./loopback.testing.ts";

const silent = { message: () => undefined, data: () => undefined, over: () => undefined };
const { followExecution } = ExecutionService.method;

function clientOf(port: number): LinkClient {
  const client = new LinkClient({ host, port, token }, systemClock);
  onTestFinished(() => client.close());
  return client;
}

it("B43 G2 a caller that asks for hundreds of streams at once makes few connections at once: strangers have little room", async () => {
  const sockets = new Set<Socket>();
  // An agent that is slow to answer: for now, not at all.
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    sockets.add(socket);
  }).listen(0, host);
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  await eventually(() => server.listening);
  const address = server.address();
  const client = clientOf(typeof address === "object" && address ? address.port : 0);
  const within = new Deadline(systemClock, 20_000);
  const opening = Array.from({ length: 300 }, () => client.open(followExecution, {}, silent, { within }));
  const ends = Promise.allSettled(opening);
  await eventually(() => sockets.size > linkDialsMax);
  const beganMs = performance.now();
  for (const end of await ends) expect(end).toMatchObject({ status: "rejected", reason: { why: "no-connection" } });
  expect(performance.now() - beganMs).toBeLessThan(5_000); // Those that waited have learnt it with the first.
  // The one that controls, those of the first turn, and whoever had a moment left when a place came free: not the hundreds that waited.
  expect(sockets.size).toBeLessThan(2 * linkDialsMax);
});

it("B43 as many streams as are asked for at once are opened", async () => {
  using agent = await listening(async (stream) => void (await stream.callerEnd));
  const client = clientOf(agent.port);
  const within = new Deadline(systemClock, 20_000);
  await Promise.all(Array.from({ length: 500 }, () => client.open(followExecution, {}, silent, { within })));
  expect(client.openStreams).toBe(500);
});
