import { Deadline, systemClock } from "@holdfast/async";
import { HandClock } from "@holdfast/testkit";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Api } from "./api.ts";
import type { KubeCluster } from "./kube-cluster.ts";
import { Reader } from "./reader.ts";
import { sandboxes } from "./resources.ts";
import { acceleratedClock, clientOf, sandboxJson, soon } from "./testing/fixtures.ts";
import { json, type Script, ScriptedApi, status } from "./testing/scripted-api.ts";

const clock = acceleratedClock(50);
const never = new Promise<never>(() => undefined);
let api: ScriptedApi;
let cluster: KubeCluster;

beforeEach(async () => {
  api = await ScriptedApi.start();
  cluster = await clientOf(api, { clock, requestTimeoutMs: 100_000 });
});

afterEach(async () => {
  await cluster.close();
  await api[Symbol.asyncDispose]();
});

/** Plays the first script once, then the object. */
const first = (script: Script): void =>
  api.script((received, reply) =>
    api.received.length === 1 ? script(received, reply) : json(reply, 200, sandboxJson()),
  );

const read = async (budgetMs = 600_000) => {
  using within = new Deadline(clock, budgetMs);
  return await cluster.readSandbox("namzu-ws-one", within);
};

describe("L38 a read is tried again", () => {
  it.each([429, 500, 502, 503, 504])("after %i", async (code) => {
    first((_received, reply) => status(reply, code, "Trouble"));
    expect(await read()).toMatchObject({ name: "namzu-ws-one", mode: "Running" });
    expect(api.received).toHaveLength(2);
  });

  it("after a connection that broke", async () => {
    first((received) => void received.socket.destroy());
    expect(await read()).toBeDefined();
  });

  it("after an answer that broke off", async () => {
    first((received, reply) => {
      reply.writeHead(200, { "content-length": 1000 });
      reply.write("{", () => received.socket.destroy());
    });
    expect(await read()).toBeDefined();
  });

  it("after a page of something in between", async () => {
    first((_received, reply) => void reply.writeHead(200).end("<html>sign in</html>"));
    expect(await read()).toBeDefined();
  });

  it("after a try that took too long", async () => {
    await cluster.close();
    cluster = await clientOf(api, { clock, requestTimeoutMs: 2_000 });
    first(() => undefined);
    expect(await read()).toBeDefined();
  });

  it.each([
    ["header in seconds", { headers: { "retry-after": "4" } }],
    ["Status", { details: { retryAfterSeconds: 4 } }],
  ])("not sooner than the server's Retry-After, as %s", async (_what, more) => {
    first((_received, reply) => status(reply, 429, "TooManyRequests", more));
    const began = clock.monotonicMs();
    await read();
    expect(clock.monotonicMs() - began).toBeGreaterThanOrEqual(4_000);
  });
});

describe("what a read makes of an object", () => {
  it("is a fault of the object only where its reader says so: a defect of ours travels out as itself", () => {
    const transport = { send: () => never, stream: () => never, close: () => undefined };
    const reader = new Reader({ transport, clock: systemClock, requestTimeoutMs: 1_000 });
    const defect = new TypeError("a defect");
    const parse = (): never => {
      throw defect;
    };
    expect(() => reader.parse(new Api("team-a").get(sandboxes, "one"), {}, parse)).toThrow(defect);
  });
});

describe("a read ends", () => {
  it("L38 with CLUSTER_UNAVAILABLE at its deadline, with the last failure's words, also where it cuts off a try that nobody answers", async () => {
    api.script((_received, reply) => {
      if (api.received.length < 3) status(reply, 503, "Unavailable", { message: "etcd is away" });
    });
    const time = new HandClock();
    using within = new Deadline(time, 5_000);
    const done = cluster.readSandbox("namzu-ws-one", within);
    await api.reached(3);
    time.pass(5_000);
    await expect(done).rejects.toMatchObject({
      reason: "CLUSTER_UNAVAILABLE",
      message: expect.stringMatching(/within 5000 ms .*etcd is away/),
    });
    expect(api.received).toHaveLength(3);
  });

  it("waits between its tries, longer each time", async () => {
    api.script((_received, reply) => status(reply, 503, "Unavailable"));
    using within = new Deadline(clock, 5_000);
    await expect(cluster.readSandbox("namzu-ws-one", within)).rejects.toMatchObject({ reason: "CLUSTER_UNAVAILABLE" });
    expect(api.received.length).toBeLessThan(20);
  });

  it("with CLUSTER_UNAVAILABLE at its deadline when nothing answers", async () => {
    api.script(() => undefined);
    await expect(read(2_000)).rejects.toMatchObject({ reason: "CLUSTER_UNAVAILABLE" });
  });

  it("at once when the server asks for more time than there is", async () => {
    api.script((_received, reply) => status(reply, 429, "TooManyRequests", { headers: { "retry-after": "3600" } }));
    using within = new Deadline(clock, 600_000);
    await expect(cluster.readSandbox("namzu-ws-one", within)).rejects.toMatchObject({ reason: "CLUSTER_UNAVAILABLE" });
    expect(within.signal.aborted).toBe(false);
    expect(api.received).toHaveLength(1);
  });

  it("with the caller's own reason when the caller cancels, waiting or reading", async () => {
    const cancelled = async (script: Script) => {
      api.received.length = 0;
      api.script(script);
      const caller = new AbortController();
      using within = new Deadline(systemClock, 60_000, caller.signal);
      const done = cluster.readSandbox("namzu-ws-one", within);
      await api.reached(1);
      const reason = new Error("my own reason");
      caller.abort(reason);
      await expect(done).rejects.toBe(reason);
    };
    await cancelled(() => undefined);
    await cancelled((_received, reply) => status(reply, 429, "Busy", { headers: { "retry-after": "30" } }));
  });

  it("without a request when it was cancelled before", async () => {
    const reason = new Error("already");
    using within = new Deadline(systemClock, 1_000, AbortSignal.abort(reason));
    await expect(cluster.readSandbox("namzu-ws-one", within)).rejects.toBe(reason);
    expect(api.received).toEqual([]);
  });

  it.each([401, 403])("with CLUSTER_FORBIDDEN on %i, once", async (code) => {
    api.script((_received, reply) => status(reply, code, "Forbidden"));
    await expect(read()).rejects.toMatchObject({ reason: "CLUSTER_FORBIDDEN", metadata: { verb: "get" } });
    expect(api.received).toHaveLength(1);
  });

  it("with undefined only when the server says that this object is not there", async () => {
    api.script((_received, reply) => status(reply, 404, "NotFound", { details: { name: "namzu-ws-one" } }));
    expect(await read()).toBeUndefined();
  });

  it.each([
    ["a missing kind", "NotFound", {}],
    ["another object", "NotFound", { name: "namzu-ws-two" }],
    ["something else", "Whatever", { name: "namzu-ws-one" }],
  ])("with an error, never as absent, on a 404 about %s", async (_what, reason, details) => {
    api.script((_received, reply) => status(reply, 404, reason, { details }));
    await expect(read()).rejects.toMatchObject({
      reason: "CLUSTER_UNAVAILABLE",
      message: expect.stringContaining("is the kind installed in this cluster?"),
    });
  });

  it("with an error that names the member of an object that cannot be read", async () => {
    api.script((_received, reply) => json(reply, 200, sandboxJson({ spec: { operatingMode: "Asleep" } })));
    await expect(read()).rejects.toMatchObject({
      reason: "CLUSTER_UNAVAILABLE",
      message: expect.stringContaining("spec.operatingMode"),
    });
    expect(api.received).toHaveLength(1);
  });
});

describe("connections", () => {
  it("are kept: reads in a row share one", async () => {
    api.script((_received, reply) => json(reply, 200, sandboxJson()));
    for (let count = 0; count < 5; count += 1) await read();
    expect(api.connections).toBe(1);
  });

  it("carry 64 calls at once", async () => {
    const held: (() => void)[] = [];
    api.script((_received, reply) => void held.push(() => json(reply, 200, sandboxJson())));
    using within = soon();
    const reads = Array.from({ length: 64 }, () => cluster.readSandbox("namzu-ws-one", within));
    await api.reached(64);
    for (const release of held) release();
    expect(await Promise.all(reads)).toHaveLength(64);
  });
});
