import { connect, createServer, type Socket } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { frameTypes } from "./frame.ts";
import { FramedSocket } from "./framed-socket.ts";
import { LinkLost } from "./link-errors.ts";
import { host } from "./loopback.testing.ts";

const none = Buffer.alloc(0);

/** Two ends of one connection; `near` speaks frames of a stream. */
async function pair() {
  const accepted = Promise.withResolvers<Socket>();
  const server = createServer(accepted.resolve);
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const address = server.address();
  if (typeof address !== "object" || address === null) return expect.unreachable();
  const raw = connect(address.port, host);
  const far = await accepted.promise;
  far.on("error", () => undefined);
  onTestFinished(() => {
    raw.destroy();
    far.destroy();
    server.close();
  });
  const heard: number[] = [];
  const closed = Promise.withResolvers<unknown>();
  const listener = {
    frame: (type: number) => void heard.push(type),
    data: () => undefined,
    closed: closed.resolve,
  };
  const near = new FramedSocket(raw, listener);
  near.enter("stream", listener);
  return { near, far, heard, listener, closed: closed.promise };
}

describe("G5 a sender that waits", () => {
  it("goes on at once where nothing is held back, and when the peer has kept up", async () => {
    const { near, far } = await pair();
    await near.drained();
    far.pause();
    expect(near.sendData(Buffer.alloc(32 * 1024 * 1024))).toBe(false); // More than the kernel takes.
    let kept = false;
    const waiting = near.drained().then(() => {
      kept = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(kept).toBe(false);
    far.resume();
    await waiting;
  });

  it("B57 and does not look whether it may go on is no unhandled failure when the connection goes", async () => {
    const { near, far, closed } = await pair();
    far.pause();
    expect(near.sendData(Buffer.alloc(32 * 1024 * 1024))).toBe(false);
    void near.drained();
    near.destroy(new Error("cut"));
    expect(await closed).toMatchObject({ message: "cut" });
  });

  it("learns that the connection is gone, whether it waited before or asks after", async () => {
    const { near, far, closed } = await pair();
    far.pause();
    expect(near.sendData(Buffer.alloc(32 * 1024 * 1024))).toBe(false); // More than the kernel takes.
    const waiting = near.drained();
    near.destroy(new Error("cut"));
    await expect(waiting).rejects.toBeInstanceOf(LinkLost);
    await closed;
    await expect(near.drained()).rejects.toBeInstanceOf(LinkLost);
    expect(near.send(frameTypes.eof, none)).toBe(false);
  });
});

describe("a connection that its listener ends", () => {
  it("delivers nothing more of the packet that it stood in", async () => {
    const { near, far, heard, listener, closed } = await pair();
    listener.frame = (type) => {
      heard.push(type);
      near.destroy(new Error("ended by its listener"));
    };
    const eof = Buffer.from("0000000023", "hex");
    far.write(Buffer.concat([eof, eof, eof]));
    await closed;
    expect(heard).toEqual([frameTypes.eof]);
  });
});
