import { connect } from "node:net";
import { ExecutionService } from "@holdfast/api/holdfast/guest/v1/execution_pb";
import { Deadline, systemClock } from "@holdfast/async";
import { linkDialsMax, linkUnauthenticatedMax } from "@holdfast/contract";
import { expect, it, onTestFinished } from "vitest";
import { LinkClient } from "./link-client.ts";
import { eventually, host, listening, token } from "./loopback.testing.ts";

const silent = { message: () => undefined, data: () => undefined, over: () => undefined };

it("B43 G2 as many streams as are asked for at once are opened, though the agent has little room for strangers", async () => {
  using agent = await listening(async (stream) => void (await stream.callerEnd));
  // Others have all the room but what one caller needs.
  const held = Array.from({ length: linkUnauthenticatedMax - linkDialsMax - 2 }, () => connect(agent.port, host));
  onTestFinished(() => {
    for (const socket of held) socket.destroy();
  });
  await eventually(() => agent.server.connections.unproved === held.length);
  const client = new LinkClient({ host, port: agent.port, token }, systemClock);
  onTestFinished(() => client.close());
  const { followExecution } = ExecutionService.method;
  const within = new Deadline(systemClock, 20_000);
  const opening = Array.from({ length: 500 }, () => client.open(followExecution, {}, silent, { within }));
  await Promise.all(opening);
  expect(client.openStreams).toBe(500);
});
