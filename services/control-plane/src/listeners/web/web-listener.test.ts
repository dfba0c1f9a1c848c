import { once } from "node:events";
import { request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { cors } from "@connectrpc/connect";
import { receiveConnectionWindowBytes, receiveWindowBytes } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import { describe, expect, it } from "vitest";
import type { ListenAddress } from "../../config/service-config.ts";
import { listenOnBoth } from "../both-listeners.testing.ts";

const path = "/holdfast.v1.WorkspaceService/GetWorkspace";
const json = { "content-type": "application/json" };
const body = JSON.stringify({ workspace_id: "w" });

interface Answer {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** A request as it is written here: fetch would choose the Host itself. */
function ask(
  { port }: ListenAddress,
  init: { method?: string; path?: string; headers?: Record<string, string>; body?: string },
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      {
        host: "127.0.0.1",
        port,
        method: init.method ?? "POST",
        path: init.path ?? path,
        headers: init.headers ?? json,
      },
      (response) => {
        let text = "";
        response.setEncoding("utf8");
        response.on("data", (chunk: string) => {
          text += chunk;
        });
        response.on("end", () => resolve({ status: response.statusCode, headers: response.headers, text }));
      },
    );
    request.on("error", reject);
    request.end(init.body ?? (init.method === "GET" ? undefined : body));
  });
}

const answering = {
  workspaces: { getWorkspace: async ({ workspaceId }: { workspaceId: string }) => ({ workspace: { workspaceId } }) },
};

describe("the web listener", () => {
  it("answers JSON as curl sends it, and says what it is", async () => {
    await using server = await listenOnBoth(answering);
    const { address } = server.webListener;
    const answer = await ask(address, { body });
    expect(answer).toMatchObject({ status: 200, text: '{"workspace":{"workspaceId":"w"}}' });
    const greeting = await ask(address, { method: "GET", path: "/" });
    expect(greeting.text).toContain("holdfast.v1.WorkspaceService");
    expect(greeting.text).toContain(`http://${server.webAddress}/holdfast.v1.WorkspaceService/OpenWorkspace`);
    expect((await ask(address, { method: "GET", path: "/nothing" })).status).toBe(404);
    expect((await ask(address, { method: "GET" })).status).toBe(405);
    expect((await ask(address, { headers: { "content-type": "text/plain" } })).status).toBe(415);
  });

  it("refuses what it cannot read by its reason, with a line of log: also a field that does not exist", async () => {
    await using server = await listenOnBoth(answering);
    for (const bad of ['{"workspace_id":', '{"workspaceid":"w"}', '{"workspace_id":7}']) {
      const answer = await ask(server.webListener.address, { body: bad });
      expect(answer.status).toBe(400);
      expect(JSON.parse(answer.text)).toMatchObject({
        code: "invalid_argument",
        details: [{ type: "google.rpc.ErrorInfo", debug: { reason: "INVALID_REQUEST", domain: "holdfast" } }],
      });
    }
    const proto = { "content-type": "application/proto" };
    expect((await ask(server.webListener.address, { headers: proto, body: "\x0a\x7f" })).text).toContain(
      "INVALID_REQUEST",
    );
    expect(server.logged()).toHaveLength(4);
    expect(server.logged()[0]).toMatchObject({ rpc: "GetWorkspace", reason: "INVALID_REQUEST" });
  });

  it("honours deadlines beyond 2^31 ms", async () => {
    await using server = await listenOnBoth(answering);
    for (const timeout of ["9999999999", "2147483648", "10000"]) {
      const headers = { ...json, "connect-timeout-ms": timeout };
      expect((await ask(server.webListener.address, { headers })).status, timeout).toBe(200);
    }
  });

  it("says by /healthz whether it drains, by any name", async () => {
    await using server = await listenOnBoth({});
    const look = () =>
      ask(server.webListener.address, { method: "GET", path: "/healthz", headers: { host: "10.1.2.3:8080" } });
    expect(await look()).toMatchObject({ status: 200, text: "serving\n" });
    server.webListener.announceDrain();
    expect(await look()).toMatchObject({ status: 503, text: "draining\n" });
  });

  it("compresses nothing, whatever the client accepts", async () => {
    await using server = await listenOnBoth({
      workspaces: { getWorkspace: async () => ({ workspace: { template: "x".repeat(100_000) } }) },
    });
    const answer = await ask(server.webListener.address, { headers: { ...json, "accept-encoding": "gzip, br" } });
    expect(answer.headers["content-encoding"]).toBeUndefined();
    expect(Number(answer.headers["content-length"])).toBeGreaterThan(100_000);
  });

  it("raises what an HTTP/2 client may send before it is read, per call and per connection", async () => {
    await using server = await listenOnBoth({});
    const session = connectHttp2(`http://${server.webAddress}`);
    await once(session, "remoteSettings");
    expect(session.remoteSettings.initialWindowSize).toBe(receiveWindowBytes);
    await expect.poll(() => session.state.remoteWindowSize).toBeGreaterThan(receiveConnectionWindowBytes / 2);
    session.destroy();
  });

  it("is not held up by clients that speak neither protocol, stop in the preface, or reset at once", async () => {
    await using server = await listenOnBoth(answering);
    const { port } = server.webListener.address;
    for (const said of ["", "PRI * HT", "PRI * HTTP/2.0\r\n\r\nXX", "\x16\x03\x01\x02\x00", "GET / HTTP/9.9\r\n\r\n"]) {
      const socket = connect(port, "127.0.0.1").on("error", () => undefined);
      socket.end(said);
      socket.resume();
      await once(socket, "close");
    }
    const reset = connect(port, "127.0.0.1").on("error", () => undefined);
    await once(reset, "connect");
    reset.resetAndDestroy();
    // The preface may come in pieces.
    const slow = connect(port, "127.0.0.1").on("error", () => undefined);
    slow.write("PRI * HTTP/2.0\r\n");
    await once(slow, "connect");
    await ask(server.webListener.address, {});
    slow.write("\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
    const [settings] = (await once(slow, "data")) as [Buffer];
    expect(settings[3]).toBe(4); // a SETTINGS frame
    slow.destroy();
    expect((await ask(server.webListener.address, {})).status).toBe(200);
  });

  it("takes the half-close before a reset for neither an upload's end nor half of a request for one", async () => {
    let ended: unknown = "not yet";
    let reached = 0;
    await using server = await listenOnBoth({
      workspaces: {
        getWorkspace: () => {
          reached += 1;
          return Promise.reject(new HoldfastError("WORKSPACE_NOT_FOUND", { message: "no" }));
        },
      },
      files: {
        async writeFile(requests) {
          try {
            for await (const _ of requests);
            ended = "whole";
          } catch (error) {
            ended = error instanceof Error ? error.name : error;
          }
          return {};
        },
      },
    });
    const session = connectHttp2(`http://${server.webAddress}`).on("error", () => undefined);
    const open = (to: string, type: string) => {
      const stream = session.request({ ":method": "POST", ":path": to, "content-type": type });
      return stream.on("error", () => undefined).resume();
    };
    const upload = open("/holdfast.v1.FileService/WriteFile", "application/connect+json");
    const start = Buffer.from('{"start":{"workspaceId":"w","path":"f"}}');
    upload.write(Buffer.concat([Buffer.from([0, 0, 0, 0, start.length]), start]));
    await expect.poll(() => server.admission.inProgress).toBe(1);
    upload.close(8); // Node half-closes first.
    await expect.poll(() => ended).toBe("AbortError");
    // A message of protobuf may end anywhere between two fields.
    const half = open(path, "application/proto");
    half.write(Buffer.from([0x0a, 1, 0x77]));
    await new Promise<void>((resolve) => session.ping(() => resolve()));
    session.destroy();
    await once(half, "close");
    expect((await ask(server.webListener.address, {})).status).toBe(404);
    expect(reached).toBe(1);
  });
});

describe("names (DNS rebinding)", () => {
  it("answers to its own, to allowed ones, and to no other, in either version of HTTP", async () => {
    await using server = await listenOnBoth(answering, { allowHosts: ["holdfast.example"] });
    const { address } = server.webListener;
    for (const host of [
      "localhost",
      "LOCALHOST:1",
      "127.0.0.1:8080",
      "[::1]:99",
      "holdfast.example",
      "Holdfast.Example:443",
    ])
      expect((await ask(address, { headers: { ...json, host } })).status, host).toBe(200);
    for (const host of [
      "evil.example",
      "127.0.0.1.evil.example",
      "localhost.",
      "x@localhost",
      "10.0.0.1:8080",
      "[::2]",
    ]) {
      const answer = await ask(address, { headers: { ...json, host } });
      expect([400, 403], JSON.stringify(host)).toContain(answer.status);
      if (answer.status === 403) expect(answer.text).toMatch(/--web-allow-host/);
    }
    expect((await ask(address, { method: "GET", path: "/", headers: { host: "evil.example" } })).status).toBe(403);
    const session = connectHttp2(`http://${server.webAddress}`);
    const statusOf = async (headers: Record<string, string>) => {
      const stream = session.request({ ":method": "POST", ":path": path, ...json, ...headers });
      stream.end(body);
      const [answer] = (await once(stream, "response")) as [Record<string, unknown>];
      return answer[":status"];
    };
    expect(await statusOf({})).toBe(200);
    expect(await statusOf({ ":authority": "evil.example" })).toBe(403);
    expect(await statusOf({ ":authority": "localhost", host: "evil.example" })).toBe(403);
    session.destroy();
    expect(server.logged().filter(({ rpc }) => rpc === "GetWorkspace")).toHaveLength(7);
  });
});

describe("origins (CORS)", () => {
  const preflight = (origin: string) => ({
    method: "OPTIONS",
    body: "",
    headers: { origin, "access-control-request-method": "POST", "access-control-request-headers": "content-type" },
  });

  it("lets nobody's pages call unless told, before any handler is asked", async () => {
    await using server = await listenOnBoth(answering);
    const { address } = server.webListener;
    for (const origin of ["https://evil.example", "null", "http://localhost:3000"]) {
      expect(await ask(address, preflight(origin))).toMatchObject({ status: 403 });
      const answer = await ask(address, { headers: { ...json, origin } });
      expect(answer.status).toBe(403);
      expect(answer.headers["access-control-allow-origin"]).toBeUndefined();
    }
    expect(server.logged()).toEqual([]);
    // A page that came from here.
    expect((await ask(address, { headers: { ...json, origin: `http://${server.webAddress}` } })).status).toBe(200);
  });

  it("answers a preflight of an allowed origin with exactly what Connect and gRPC-Web need and the epoch, without credentials", async () => {
    await using server = await listenOnBoth(answering, { allowOrigins: ["https://console.example"] });
    const { address } = server.webListener;
    const { status, headers } = await ask(address, preflight("https://console.example"));
    expect(status).toBe(204);
    expect(headers).toMatchObject({
      "access-control-allow-origin": "https://console.example",
      "access-control-allow-methods": "POST, GET",
      "access-control-allow-headers": `${cors.allowedHeaders.join(", ")}, holdfast-epoch`,
      vary: "Origin",
    });
    expect(headers["access-control-allow-credentials"]).toBeUndefined();
    const answer = await ask(address, { headers: { ...json, origin: "https://console.example" } });
    expect(answer.status).toBe(200);
    expect(answer.headers["access-control-allow-origin"]).toBe("https://console.example");
    expect(answer.headers["access-control-expose-headers"]).toBe(cors.exposedHeaders.join(", "));
    expect((await ask(address, preflight("https://other.console.example"))).status).toBe(403);
  });
});
