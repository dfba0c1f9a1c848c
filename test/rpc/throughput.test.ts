import { once } from "node:events";
import { connect } from "node:http2";
import { createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { FileService } from "@holdfast/api/holdfast/v1/file_pb";
import { describe, expect, it } from "vitest";
import { listenOnBoth } from "../../services/control-plane/src/listeners/both-listeners.testing.ts";
import { delayProxy } from "./delay-proxy.ts";

const mib = 1024 * 1024;
const chunk = Buffer.alloc(64 * 1024, 7);
const start = { part: { case: "start" as const, value: { workspaceId: "w", path: "f" } } };
const delayMs = 5;

/** A client raises its own windows for what it receives. connect-node's can raise a stream's and not the connection's: see the raw one. */
const windowBytes = 8 * mib;
const nodeOptions = { settings: { initialWindowSize: windowBytes } };
const transports: readonly (readonly [string, (baseUrl: string) => Transport])[] = [
  ["Connect, HTTP/1.1", (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1" })],
  ["Connect, HTTP/2", (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "2", nodeOptions })],
  ["gRPC-Web, HTTP/1.1", (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" })],
  ["gRPC, HTTP/2", (baseUrl) => createGrpcTransport({ baseUrl, nodeOptions })],
];

const files = {
  async *readFile({ length }: { length?: bigint | undefined }) {
    yield { event: { case: "opened" as const, value: { path: "f" } } };
    for (let offset = 0; offset < Number(length); offset += chunk.length) {
      yield { event: { case: "chunk" as const, value: { offset: BigInt(offset), data: chunk } } };
    }
  },
  async writeFile(requests: AsyncIterable<{ part: { case?: string | undefined; value?: unknown } }>) {
    let size = 0;
    for await (const { part } of requests) if (part.case === "data") size += (part.value as Uint8Array).length;
    return { file: { path: "f", size: BigInt(size) } };
  },
};

async function download(transport: Transport, bytes: number): Promise<number> {
  const startedMs = performance.now();
  let received = 0;
  const stream = createClient(FileService, transport).readFile({ workspaceId: "w", path: "f", length: BigInt(bytes) });
  for await (const { event } of stream) if (event.case === "chunk") received += event.value.data.length;
  expect(received).toBe(bytes);
  return bytes / 1e6 / ((performance.now() - startedMs) / 1000);
}

/** By an HTTP/2 client whose connection's window is raised too, as browsers have it. */
async function downloadRaw(address: string, bytes: number): Promise<number> {
  const session = connect(`http://${address}`, nodeOptions);
  await once(session, "connect");
  session.setLocalWindowSize(windowBytes);
  const startedMs = performance.now();
  const stream = session.request({
    ":method": "POST",
    ":path": "/holdfast.v1.FileService/ReadFile",
    "content-type": "application/connect+json",
  });
  const message = Buffer.from(JSON.stringify({ workspaceId: "w", path: "f", length: String(bytes) }));
  stream.end(Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message]));
  let received = 0;
  for await (const data of stream) received += (data as Buffer).length;
  const mbps = received / 1e6 / ((performance.now() - startedMs) / 1000);
  session.destroy();
  expect(received).toBeGreaterThan(bytes);
  return mbps;
}

async function upload(transport: Transport, bytes: number): Promise<number> {
  const startedMs = performance.now();
  const { file } = await createClient(FileService, transport).writeFile(
    (async function* () {
      yield start;
      for (let sent = 0; sent < bytes; sent += chunk.length) yield { part: { case: "data" as const, value: chunk } };
    })(),
  );
  expect(Number(file?.size)).toBe(bytes);
  return bytes / 1e6 / ((performance.now() - startedMs) / 1000);
}

describe("the web listener's streams are not capped at a few MB/s", () => {
  it("by HTTP/2, 10 ms away, when the client's windows are not the limit", async () => {
    await using server = await listenOnBoth({ files });
    await using far = await delayProxy(server.webAddress, delayMs);
    const mbps = await downloadRaw(far.address, 64 * mib);
    console.log(`Connect in JSON, HTTP/2, raised windows: ${mbps.toFixed(0)} MB/s down at 10 ms`);
    expect(mbps).toBeGreaterThan(10);
  });

  it.each(transports)("by %s, also 10 ms away", async (name, open) => {
    await using server = await listenOnBoth({ files });
    await using far = await delayProxy(server.webAddress, delayMs);
    const down = await download(open(`http://${server.webAddress}`), 256 * mib);
    const farDown = await download(open(`http://${far.address}`), 64 * mib);
    const up = await upload(open(`http://${server.webAddress}`), 64 * mib);
    const farUp = await upload(open(`http://${far.address}`), 64 * mib);
    const [a, b, c, d] = [down, farDown, up, farUp].map((mbps) => mbps.toFixed(0));
    console.log(`${name}: ${a} MB/s down, ${b} at 10 ms; ${c} MB/s up, ${d} at 10 ms`);
    // Without raised windows an upload at 10 ms gets 6 MB/s over HTTP/2, at best.
    expect(farUp).toBeGreaterThan(10);
    expect(down).toBeGreaterThan(10);
  });
});
