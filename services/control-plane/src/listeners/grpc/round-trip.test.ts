import { once } from "node:events";
import { connect, createServer, type ServerHttp2Session } from "node:http2";
import { describe, expect, it } from "vitest";
import { afterRoundTrip } from "./round-trip.ts";

async function connected() {
  const server = createServer();
  const sessions = once(server, "session") as Promise<[ServerHttp2Session]>;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  const client = connect(`http://127.0.0.1:${address.port}`);
  client.on("error", () => undefined);
  const [session] = await sessions;
  return {
    session,
    client,
    async [Symbol.asyncDispose]() {
      client.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

describe("a round trip", () => {
  it("serves any number that wait at once, in their order, though a session carries only ten pings", async () => {
    await using link = await connected();
    const served: number[] = [];
    await new Promise<void>((resolve) => {
      for (let at = 0; at < 500; at += 1) {
        afterRoundTrip(link.session, () => {
          served.push(at);
          if (at === 499) resolve();
        });
      }
    });
    expect(served).toEqual(Array.from({ length: 500 }, (_, at) => at));
    await new Promise<void>((resolve) => afterRoundTrip(link.session, resolve));
  });

  it("does not serve whoever came after the ping with it: a later one does", async () => {
    await using link = await connected();
    const order: string[] = [];
    await new Promise<void>((resolve) => {
      afterRoundTrip(link.session, () => {
        order.push("first");
        afterRoundTrip(link.session, () => {
          order.push("third");
          resolve();
        });
      });
      afterRoundTrip(link.session, () => order.push("second"));
    });
    expect(order).toEqual(["first", "second", "third"]);
  });

  it("never ends on a connection that does, and throws nothing", async () => {
    await using link = await connected();
    let served = false;
    link.client.destroy();
    afterRoundTrip(link.session, () => {
      served = true;
    });
    await once(link.session, "close");
    afterRoundTrip(link.session, () => {
      served = true;
    });
    expect(served).toBe(false);
  });
});
