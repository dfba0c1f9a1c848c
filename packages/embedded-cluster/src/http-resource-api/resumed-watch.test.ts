import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { ApiStatusError } from "../api-status-error.ts";
import type { ResourceRef, WatchEvent } from "../resource-api.ts";
import { HttpResourceApi } from "./http-resource-api.ts";

const pods: ResourceRef = { group: "", version: "v1", plural: "pods" };

/** Answers one watch request; `from` is the version that it asks to go on from. */
type Answer = (response: ServerResponse, from: string) => void;

let server: Server;
let api: HttpResourceApi;
let asked: string[];

/** A server that answers the first watch by the first script, the second by the second, and holds every later one open. */
async function serve(...answers: Answer[]): Promise<void> {
  asked = [];
  server = createServer((request, response) => {
    const from = new URL(request.url ?? "", "http://x").searchParams.get("resourceVersion") ?? "";
    const answer = answers[asked.push(from) - 1] ?? ((held) => held.flushHeaders());
    answer(response, from);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  api = new HttpResourceApi({
    url: `http://127.0.0.1:${port}`,
    ca: undefined,
    token: undefined,
    clientCertificate: undefined,
  });
}

afterEach(() => {
  api.close();
  server.closeAllConnections();
  server.close();
});

const line = (type: string, name: string, version: number | string) =>
  `${JSON.stringify({ type, object: { apiVersion: "v1", kind: "Pod", metadata: { name, resourceVersion: `${version}` } } })}\n`;
const bookmark = (version: number) =>
  `${JSON.stringify({ type: "BOOKMARK", object: { kind: "Pod", metadata: { resourceVersion: `${version}` } } })}\n`;
const gone = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", reason: "Expired", code: 410 };

/** Watches from 5 until `count` events came. */
async function collect(count: number): Promise<string[]> {
  const enough = new AbortController();
  const seen: string[] = [];
  for await (const event of api.watch(pods, "5", enough.signal)) {
    seen.push(summary(event));
    if (seen.length >= count) enough.abort();
  }
  return seen;
}

const summary = ({ type, object }: WatchEvent) =>
  `${type} ${object.metadata.name} ${object.metadata.resourceVersion}`.replace("  ", " ");

async function all(events: AsyncIterable<WatchEvent>): Promise<WatchEvent[]> {
  const seen: WatchEvent[] = [];
  for await (const event of events) seen.push(event);
  return seen;
}

describe("a watch over HTTP", () => {
  it("goes on where it stood when the server ends the stream", async () => {
    await serve(
      (response) => response.end(line("ADDED", "a", 6) + line("MODIFIED", "a", 7)),
      (response) => response.write(line("DELETED", "a", 8)),
    );
    expect(await collect(3)).toEqual(["ADDED a 6", "MODIFIED a 7", "DELETED a 8"]);
    expect(asked).toEqual(["5", "7"]);
  });

  it("tells an event whose line was cut off once, and whole", async () => {
    await serve(
      (response) =>
        response.write(line("ADDED", "a", 6) + line("ADDED", "b", 7).slice(0, 30), () => response.destroy()),
      (response) => response.write(line("ADDED", "b", 7)),
    );
    expect(await collect(2)).toEqual(["ADDED a 6", "ADDED b 7"]);
    expect(asked).toEqual(["5", "6"]);
  });

  it("tells events whose lines come in pieces, and several in one piece", async () => {
    const text = line("ADDED", "ä€😀", 6) + line("ADDED", "b", 7);
    const bytes = Buffer.from(text);
    await serve((response) => {
      const next = (at: number): void => {
        if (at < bytes.length) response.write(bytes.subarray(at, at + 7), () => next(at + 7));
      };
      next(0);
    });
    expect(await collect(2)).toEqual(["ADDED ä€😀 6", "ADDED b 7"]);
  });

  it("goes on from a bookmark, which names no object", async () => {
    await serve(
      (response) => response.end(bookmark(40)),
      (response) => response.write(line("ADDED", "a", 41)),
    );
    expect(await collect(2)).toEqual(["BOOKMARK 40", "ADDED a 41"]);
    expect(asked).toEqual(["5", "40"]);
  });

  it.each([
    ["as the answer", (response: ServerResponse) => response.writeHead(410).end(JSON.stringify(gone))],
    [
      "in the stream",
      (response: ServerResponse) => response.write(`${JSON.stringify({ type: "ERROR", object: gone })}\n`),
    ],
  ])("throws that its version is compacted, told %s", async (_, answer) => {
    await serve(
      (response) => response.end(line("ADDED", "a", 6)),
      (response) => answer(response),
    );
    const refused = await collect(9).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(ApiStatusError);
    expect(refused).toMatchObject({ code: 410, reason: "Expired" });
    expect(asked).toEqual(["5", "6"]);
  });

  it("throws where the server is not reached or answers nonsense", async () => {
    await serve((response) => response.end("{}\n"));
    await expect(collect(1)).rejects.toThrow(/unknown type/);
    server.closeAllConnections();
    server.close();
    await expect(collect(1)).rejects.toThrow(/ECONNREFUSED/);
  });

  it("ends in silence when the caller leaves, before, while and between", async () => {
    await serve();
    expect(await all(api.watch(pods, "5", AbortSignal.abort()))).toEqual([]);
    const leaving = new AbortController();
    const watching = all(api.watch(pods, "5", leaving.signal));
    await expect.poll(() => asked.length).toBe(1);
    leaving.abort();
    expect(await watching).toEqual([]);
  });

  it("lets the connection go when the caller stops reading", async () => {
    await serve((response) => response.write(line("ADDED", "a", 6)));
    for await (const event of api.watch(pods, "5", new AbortController().signal)) {
      expect(event.type).toBe("ADDED");
      break;
    }
    await expect.poll(() => new Promise((resolve) => server.getConnections((_, count) => resolve(count)))).toBe(0);
  });
});

describe("a call over HTTP", () => {
  const ref = { resource: pods, namespace: "default", name: "a" };

  it("whose reply is lost is sent once, and fails as no refusal", async () => {
    await serve((response) => response.destroy());
    const failure = await api.patch(ref, "application/merge-patch+json", {}).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "ECONNRESET" });
    expect(failure).not.toBeInstanceOf(ApiStatusError);
    expect(asked).toHaveLength(1);
  });

  it("that somebody else answers (a proxy, say) quotes what was answered", async () => {
    await serve((response) => response.writeHead(502).end("<h1>Bad Gateway</h1>"));
    await expect(api.get(ref)).rejects.toThrow("the server answered 502 and no Status: <h1>Bad Gateway</h1>");
  });
});
