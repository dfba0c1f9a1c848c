import type { Socket } from "node:net";
import { ExecutionService } from "@holdfast/api/holdfast/guest/v1/execution_pb";
import { Deadline, systemClock } from "@holdfast/async";
import { describe, expect, it } from "vitest";
import { greet } from "./handshake-agent.ts";
import { clientOf, closeOf, identity, serve } from "./held-agent.testing.ts";
import { NothingSent } from "./link-errors.ts";

const follow = ExecutionService.method.followExecution;
const silent = { message: () => undefined, data: () => undefined, over: () => undefined };
const soon = () => new Deadline(systemClock, 5_000);

describe("a stream whose control connection does not come about", () => {
  it("G2 is not opened, and its own connection is let go", async () => {
    const streamClosed = Promise.withResolvers<void>();
    const { client } = await clientOf((socket, nth) => {
      if (nth === 1) void closeOf(socket).then(streamClosed.resolve);
      void serve(socket, nth === 1 ? undefined : "no room for this one");
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
    void serve(control);
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
