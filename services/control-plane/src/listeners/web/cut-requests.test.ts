import { once } from "node:events";
import { connect as connectHttp2, constants } from "node:http2";
import { connect } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import { PutFileRequestSchema } from "@holdfast/api/holdfast/v1/file_pb";
import { describe, expect, it, onTestFinished } from "vitest";
import type { HandlerContext } from "../../rpc/call-context.ts";
import { listenOnBoth } from "../both-listeners.testing.ts";

const post = (method: string) => ({
  ":method": "POST",
  ":path": `/holdfast.v1.${method}`,
  "content-type": "application/proto",
});
const start = { workspaceId: "w", path: "f" };
const message = (data: Uint8Array) => toBinary(PutFileRequestSchema, create(PutFileRequestSchema, { start, data }));

/** A server that records what it was asked to put, and a connection to it. */
async function puts() {
  const asked: number[] = [];
  const putFile = async ({ data }: { data: Uint8Array }) => {
    asked.push(data.length);
    return { file: { path: "f" } };
  };
  const server = await listenOnBoth({ files: { putFile } });
  const session = connectHttp2(`http://${server.webAddress}`);
  onTestFinished(async () => {
    session.destroy();
    await server[Symbol.asyncDispose]();
  });
  const roundTrip = () => new Promise<void>((resolve) => session.ping(() => resolve()));
  return { asked, session, roundTrip };
}

describe("requests over HTTP/2 that were cut off", () => {
  // A message that ends before its content is a message too: it would put an empty file in the place of the one that stands.
  it("are not carried out, though what came of a bare message in protobuf is one", async () => {
    const { asked, session, roundTrip } = await puts();
    for (let tries = 0; tries < 20; tries += 1) {
      const stream = session.request(post("FileService/PutFile"));
      stream.write(message(new Uint8Array()));
      await roundTrip(); // The service has it.
      stream.close(constants.NGHTTP2_CANCEL); // Node half-closes first.
      await once(stream, "close");
    }
    for (let trips = 0; trips < 4; trips += 1) await roundTrip();
    expect(asked).toEqual([]);
  });

  it("are told from whole ones, with a length and without", async () => {
    const { asked, session } = await puts();
    const bytes = message(Buffer.alloc(100_000));
    for (const length of [{}, { "content-length": String(bytes.length) }]) {
      const stream = session.request({ ...post("FileService/PutFile"), ...length }).end(bytes);
      const [headers] = await once(stream, "response");
      expect(headers[":status"]).toBe(200);
      stream.close();
    }
    expect(asked).toEqual([100_000, 100_000]);
    const short = session.request({ ...post("FileService/PutFile"), "content-length": "5000" });
    short.end(message(new Uint8Array()));
    await expect(once(short, "response")).rejects.toThrow("NGHTTP2_PROTOCOL_ERROR");
    expect(asked).toHaveLength(2);
  });
});

it("a client that ends its half of an HTTP/2 connection, as one that is killed does, is heard at once", async () => {
  const entered = Promise.withResolvers<HandlerContext>();
  const getWorkspace = async (_: unknown, context: HandlerContext) => {
    entered.resolve(context);
    await once(context.signal, "abort");
    throw context.signal.reason;
  };
  await using server = await listenOnBoth({ workspaces: { getWorkspace } });
  const { port } = server.webListener.address;
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  const session = connectHttp2(`http://${server.webAddress}`, { createConnection: () => socket });
  onTestFinished(() => void socket.destroy());
  session.on("error", () => undefined);
  const stream = session.request({ ...post("WorkspaceService/GetWorkspace"), "content-length": "3" });
  stream.on("error", () => undefined).end(Buffer.from([0x0a, 1, 0x77]));
  const { signal } = await entered.promise;
  socket.end();
  await once(signal, "abort", { signal: AbortSignal.timeout(3_000) });
});
