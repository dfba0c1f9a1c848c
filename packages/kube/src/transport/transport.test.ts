import { getEventListeners } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { systemClock } from "@holdfast/async";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { kubeConfigFrom } from "../kube-config.ts";
import { json, kubeconfigText, ScriptedApi } from "../testing/scripted-api.ts";
import { Connections } from "./connections.ts";
import type { NoAnswer } from "./no-answer.ts";
import { type ApiStream, readText, Transport } from "./transport.ts";

let api: ScriptedApi;
let transport: Transport;
const config = () => kubeConfigFrom({ kubeconfigPath: api.kubeconfigPath });
const get = { method: "GET", path: "/api/v1/pods" } as const;
const never = new AbortController().signal;

beforeEach(async () => {
  api = await ScriptedApi.start();
  transport = new Transport(config(), systemClock);
});
afterEach(async () => {
  transport.close();
  await api[Symbol.asyncDispose]();
});

const failureOf = (sending: Promise<unknown>): Promise<NoAnswer> =>
  sending.then(
    () => expect.unreachable("it was answered"),
    (error: NoAnswer) => error,
  );

describe("L1 what is known of a request that was not answered", () => {
  it("on a connection that stood before: it may have been read", async () => {
    api.script((_received, reply) => json(reply, 200, {}));
    await transport.send(get, never);
    api.script(({ socket }) => void socket.destroy());
    expect(await failureOf(transport.send(get, never))).toMatchObject({ sent: true });
    expect(api.received).toHaveLength(2);
    expect(api.connections).toBe(1);
  });

  it("whose caller went while the credentials were being found: not one byte was sent, however late they come", async () => {
    const slow = config();
    const credentials = Promise.withResolvers<void>();
    slow.applyToHTTPSOptions = () => credentials.promise;
    transport = new Transport(slow, systemClock);
    const caller = new AbortController();
    const sending = failureOf(transport.send(get, caller.signal));
    credentials.resolve();
    void credentials.promise.then(() => caller.abort(new Error("gone"))); // Behind the transport's own reaction.
    expect(await sending).toMatchObject({ sent: false, message: "gone" });
    expect(api.received).toEqual([]);
  });

  it("whose caller had gone before: no credentials are looked for", async () => {
    let looked = false;
    const watched = config();
    watched.applyToHTTPSOptions = async () => {
      looked = true;
    };
    transport = new Transport(watched, systemClock);
    expect(await failureOf(transport.send(get, AbortSignal.abort(new Error("gone"))))).toMatchObject({ sent: false });
    expect(looked).toBe(false);
  });

  it("after the client was closed: nothing was sent", async () => {
    transport.close();
    expect(await failureOf(transport.send(get, never))).toMatchObject({ sent: false });
    expect(api.received).toEqual([]);
  });

  it("that is larger than an answer may be: the server may have acted", async () => {
    const chunk = Buffer.alloc(1024 * 1024);
    let given = 0;
    const endless: ApiStream = {
      headers: {},
      async *[Symbol.asyncIterator]() {
        for (; given < 1_000; given += 1) yield chunk;
      },
    };
    expect(await failureOf(readText(endless, never))).toMatchObject({ sent: true });
    expect(given).toBe(64);
  });
});

describe("a client that is closed", () => {
  it("closes what it kept for later", async () => {
    api.script((_received, reply) => json(reply, 200, {}));
    await transport.send(get, never);
    const socket = api.received[0]?.socket;
    const closed = new Promise<void>((resolve) => socket?.once("close", () => resolve()));
    for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve)); // It is back in the pool.
    transport.close();
    await closed;
  });

  it("ends those that wait for a connection too, and sends none of them", async () => {
    const most = 128;
    api.script(() => undefined);
    const sending = Array.from({ length: most + 2 }, () => failureOf(transport.send(get, never)));
    await api.reached(most);
    transport.close();
    const sent = (await Promise.all(sending)).map((failure) => failure.sent);
    expect(sent.filter((was) => was)).toHaveLength(most);
    expect(api.received).toHaveLength(most);
  });
});

describe("a request", () => {
  it("leaves nothing on its caller's signal", async () => {
    api.script((_received, reply) => json(reply, 200, {}));
    const { signal } = new AbortController();
    for (let count = 0; count < 3; count += 1) await transport.send(get, signal);
    await expect.poll(() => getEventListeners(signal, "abort").length).toBe(0);
  });

  it("that lasts is probed by the kernel, so that a connection that the network forgot is found", async () => {
    api.script((_received, reply) => reply.writeHead(200).flushHeaders());
    const body = await transport.stream(get, never, 30_000);
    const port = api.received[0]?.socket.remotePort ?? 0;
    const local = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
    const fields = readFileSync("/proc/net/tcp", "utf8")
      .split("\n")
      .map((line) => line.trim().split(/\s+/));
    const timer = fields.find((field) => field[1]?.endsWith(local))?.[5];
    // A keep-alive probe is what the kernel waits for, and not for the second after which a pool's are sent.
    expect(timer?.slice(0, 2)).toBe("02");
    expect(Number.parseInt(timer?.slice(3) ?? "", 16)).toBeGreaterThan(1_000);
    body.destroy();
  });

  it("goes by the cluster's proxy, where it names one", async () => {
    const asked: (string | undefined)[] = [];
    await using proxy = createServer();
    proxy.on("connect", (request, socket) => {
      asked.push(request.url);
      socket.destroy();
    });
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    const address = proxy.address();
    if (typeof address !== "object" || address === null) return expect.unreachable();
    const proxied = JSON.parse(kubeconfigText("http://api.invalid:6443"));
    proxied.clusters[0].cluster["proxy-url"] = `http://127.0.0.1:${address.port}`;
    writeFileSync(api.kubeconfigPath, JSON.stringify(proxied));
    transport = new Transport(config(), systemClock);
    await failureOf(transport.send(get, never));
    expect(asked).toEqual(["api.invalid:6443"]);
  });

  it("carries a name and password, where the user has them", async () => {
    api.script((_received, reply) => json(reply, 200, {}));
    const named = JSON.parse(kubeconfigText(api.address));
    named.users[0].user = { username: "me", password: "secret" };
    writeFileSync(api.kubeconfigPath, JSON.stringify(named));
    transport = new Transport(config(), systemClock);
    await transport.send(get, never);
    expect(api.received[0]?.headers.authorization).toBe(`Basic ${Buffer.from("me:secret").toString("base64")}`);
  });

  it("reaches an address of IPv6 by its number, not as a name", async () => {
    writeFileSync(api.kubeconfigPath, kubeconfigText("http://[::1]:1"));
    transport = new Transport(config(), systemClock);
    const failure = await failureOf(transport.send(get, never));
    expect(failure.sent).toBe(false);
    expect(failure.message).not.toContain("ENOTFOUND");
  });
});

describe("the kept connections", () => {
  it("are the same for the same credentials, and others for others", () => {
    using connections = new (class extends Connections implements Disposable {
      [Symbol.dispose](): void {
        this.close();
      }
    })();
    const first = connections.agentFor(true, { ca: Buffer.from("a"), key: "k" });
    expect(connections.agentFor(true, { ca: Buffer.from("a"), key: "k" })).toBe(first);
    const second = connections.agentFor(true, { ca: Buffer.from("b"), key: "k" });
    expect(second).not.toBe(first);
    expect(connections.agentFor(true, { ca: Buffer.from("b"), key: "l" })).not.toBe(second);
  });
});
