import type { ServerResponse } from "node:http";
import { type Clock, Deadline, systemClock } from "@holdfast/async";
import type { SandboxReading, WriteEnding } from "@holdfast/workspace";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { KubeCluster } from "./kube-cluster.ts";
import { readSandboxObject } from "./objects/sandbox.ts";
import { acceleratedClock, clientOf, sandboxJson, soon } from "./testing/fixtures.ts";
import { json, type Received, type Script, ScriptedApi, status } from "./testing/scripted-api.ts";

let api: ScriptedApi;
let cluster: KubeCluster;

beforeEach(async () => {
  api = await ScriptedApi.start();
  cluster = await clientOf(api);
});

afterEach(async () => {
  await cluster.close();
  await api[Symbol.asyncDispose]();
});

/** The machine's time, which tells when a wait of some length begins. */
class WaitingClock implements Clock {
  readonly now = systemClock.now;
  readonly monotonicMs = systemClock.monotonicMs;
  readonly #begun = new Map<number, PromiseWithResolvers<void>>();

  schedule(afterMs: number, run: () => void): () => void {
    this.#of(afterMs).resolve();
    return systemClock.schedule(afterMs, run);
  }

  /** Resolves once somebody waits for so long. */
  waits(ms: number): Promise<void> {
    return this.#of(ms).promise;
  }

  #of(ms: number): PromiseWithResolvers<void> {
    const begun = this.#begun.get(ms) ?? Promise.withResolvers<void>();
    this.#begun.set(ms, begun);
    return begun;
  }
}

const wish = () => ({
  reading: readSandboxObject(sandboxJson(), "block"),
  mode: "Suspended" as const,
  writtenBy: "call-2",
  volumeClaimUids: undefined,
  now: 0,
});

const landed = (_received: Received, reply: ServerResponse, code = 200): void =>
  json(
    reply,
    code,
    sandboxJson({
      metadata: { annotations: { "holdfast.dev/written-by": "call-2" } },
      spec: { operatingMode: "Suspended" },
    }),
  );

async function patchAgainst(script: Script): Promise<WriteEnding<SandboxReading>> {
  api.script(script);
  using within = soon();
  return await cluster.setMode(wish(), within);
}

describe("a write is refused", () => {
  it.each([
    [422, "Invalid", {}],
    [409, "Conflict", {}],
  ])("B82 as a condition by %i %s, with the server's words", async (code, reason, details) => {
    const ending = await patchAgainst((_received, reply) =>
      status(reply, code, reason, { message: "in its words", details }),
    );
    expect(ending).toMatchObject({ t: "refused", why: "condition", error: { reason: "CLUSTER_WRITE_REFUSED" } });
    expect(ending).toHaveProperty("error.message", expect.stringContaining("in its words"));
    expect(api.received).toHaveLength(1);
  });

  it("B82 for good by a 422 that names fields: every test had held", async () => {
    const details = { name: "namzu-ws-one", causes: [{ field: "spec.operatingMode", message: "unsupported value" }] };
    const ending = await patchAgainst((_received, reply) => status(reply, 422, "Invalid", { details }));
    expect(ending).toMatchObject({ t: "refused", why: "other", error: { reason: "CLUSTER_WRITE_REFUSED" } });
  });

  it.each([404, 410])("as absent by a %i that names the object", async (code) => {
    const reason = code === 404 ? "NotFound" : "Gone";
    const ending = await patchAgainst((_received, reply) =>
      status(reply, code, reason, { details: { name: "namzu-ws-one" } }),
    );
    expect(ending).toMatchObject({ t: "refused", why: "absent", error: { reason: "WORKSPACE_NOT_FOUND" } });
  });

  it.each([
    ["of a missing kind", "the server could not find the requested resource", {}],
    ["of a missing namespace", 'namespaces "team-a" not found', { name: "team-a", kind: "namespaces" }],
  ])("but not as absent by a 404 %s", async (_what, message, details) => {
    const ending = await patchAgainst((_received, reply) => status(reply, 404, "NotFound", { message, details }));
    expect(ending).toMatchObject({ t: "refused", why: "other", error: { reason: "CLUSTER_WRITE_REFUSED" } });
    expect(ending).toHaveProperty("error.message", expect.stringContaining(message));
  });

  it("with CLUSTER_FORBIDDEN that names verb, resource and namespace", async () => {
    const ending = await patchAgainst((_received, reply) =>
      status(reply, 403, "Forbidden", { message: "RBAC says no" }),
    );
    expect(ending).toMatchObject({
      t: "refused",
      why: "other",
      error: {
        reason: "CLUSTER_FORBIDDEN",
        metadata: { verb: "patch", resource: "sandboxes.agents.x-k8s.io", namespace: "team-a" },
      },
    });
    expect(ending).toHaveProperty(
      "error.message",
      expect.stringMatching(/may not patch sandboxes\.agents\.x-k8s\.io in namespace team-a: RBAC says no/),
    );
  });

  it("with CLUSTER_FORBIDDEN where the service's credentials are not accepted", async () => {
    const ending = await patchAgainst((_received, reply) => status(reply, 401, "Unauthorized"));
    expect(ending).toMatchObject({ t: "refused", why: "other", error: { reason: "CLUSTER_FORBIDDEN" } });
    expect(ending).toHaveProperty(
      "error.message",
      expect.stringContaining("does not accept the service's credentials"),
    );
  });

  it.each([400, 405, 413, 415])("by any other %i, with the server's words", async (code) => {
    const ending = await patchAgainst((_received, reply) => void reply.writeHead(code).end("plain words"));
    expect(ending).toMatchObject({ t: "refused", why: "other", error: { reason: "CLUSTER_WRITE_REFUSED" } });
    expect(ending).toHaveProperty("error.message", expect.stringContaining("plain words"));
  });

  it("when nobody listens: nothing was sent", async () => {
    await api[Symbol.asyncDispose]();
    using within = soon();
    const ending = await cluster.setMode(wish(), within);
    expect(ending).toMatchObject({ t: "refused", why: "other", error: { reason: "CLUSTER_UNAVAILABLE" } });
    api = await ScriptedApi.start();
  });

  it("when its deadline was over before: nothing was sent", async () => {
    api.script(landed);
    const caller = new AbortController();
    caller.abort(new Error("went away"));
    using within = new Deadline(systemClock, 1_000, caller.signal);
    const ending = await cluster.setMode(wish(), within);
    expect(ending).toMatchObject({ t: "refused", why: "other", error: { reason: "CLUSTER_UNAVAILABLE" } });
    expect(api.received).toEqual([]);
  });
});

describe("L1 a write is unknown, and sent once", () => {
  it.each([408, 500, 502, 503, 504])("B82 after a %i, though it says that a test failed", async (code) => {
    const ending = await patchAgainst((_received, reply) =>
      status(reply, code, "InternalError", { message: "testing value /metadata/uid failed" }),
    );
    expect(ending.t).toBe("unknown");
    expect(api.received).toHaveLength(1);
  });

  it.each([300, 307])("after a redirect, %i, though it carries an object with our write", async (code) => {
    const ending = await patchAgainst((received, reply) => landed(received, reply, code));
    expect(ending.t).toBe("unknown");
    expect(api.received).toHaveLength(1);
  });

  it("when the connection breaks before the answer", async () => {
    const ending = await patchAgainst((received) => void received.socket.destroy());
    expect(ending.t).toBe("unknown");
    expect(api.received).toHaveLength(1);
  });

  it("when the connection breaks within the answer", async () => {
    const ending = await patchAgainst((received, reply) => {
      reply.writeHead(200, { "content-type": "application/json", "content-length": 1000 });
      reply.write('{"kind":', () => received.socket.destroy());
    });
    expect(ending.t).toBe("unknown");
  });

  it.each(["<html>welcome</html>", "null", "[]", '{"kind":"Status","status":"Success"}', ""])(
    "when it is answered 200 with %j",
    async (text) => {
      const ending = await patchAgainst((_received, reply) => void reply.writeHead(200).end(text));
      expect(ending.t).toBe("unknown");
    },
  );

  it("when no answer comes in the time of a request, although the deadline is further", async () => {
    await cluster.close();
    cluster = await clientOf(api, { requestTimeoutMs: 60 });
    api.script(() => undefined);
    using within = soon();
    expect((await cluster.setMode(wish(), within)).t).toBe("unknown");
    expect(within.signal.aborted).toBe(false);
    expect(api.received).toHaveLength(1);
  });

  it("when its reply comes late, which no later call takes for its own", async () => {
    await cluster.close();
    cluster = await clientOf(api, { requestTimeoutMs: 60 });
    let late: (() => void) | undefined;
    const ending = await patchAgainst((received, reply) => {
      late = () => void landed(received, reply);
    });
    expect(ending.t).toBe("unknown");
    api.script((_received, reply) => json(reply, 200, sandboxJson({ metadata: { resourceVersion: "77" } })));
    late?.();
    using within = soon();
    expect(await cluster.readSandbox("namzu-ws-one", within)).toMatchObject({ mode: "Running", resourceVersion: "77" });
  });

  it("when the caller goes away after it was sent, at once and with its socket closed", async () => {
    api.script(() => undefined);
    const caller = new AbortController();
    using within = new Deadline(systemClock, 60_000, caller.signal);
    const ending = cluster.setMode(wish(), within);
    await api.reached(1);
    const closed = new Promise<void>((resolve) => api.received[0]?.socket.once("close", () => resolve()));
    const reason = new Error("went away");
    caller.abort(reason);
    expect(await ending).toMatchObject({ t: "unknown", cause: { cause: reason } });
    await closed;
  });

  it("when the client is closed under it", async () => {
    api.script(() => undefined);
    using within = soon();
    const ending = cluster.setMode(wish(), within);
    await api.reached(1);
    await cluster.close();
    expect((await ending).t).toBe("unknown");
  });
});

describe("a write that is turned away with 429", () => {
  it("is sent again after Retry-After: it had not been read", async () => {
    const clock = acceleratedClock(50);
    await cluster.close();
    cluster = await clientOf(api, { clock, requestTimeoutMs: 100_000 });
    api.script((received, reply) => {
      if (api.received.length === 1) status(reply, 429, "TooManyRequests", { headers: { "retry-after": "3" } });
      else void landed(received, reply);
    });
    using within = soon(clock, 600_000);
    const began = clock.monotonicMs();
    expect((await cluster.setMode(wish(), within)).t).toBe("applied");
    expect(clock.monotonicMs() - began).toBeGreaterThanOrEqual(3_000);
    expect(api.received).toHaveLength(2);
  });

  const turnedAwayFor =
    (seconds: number): Script =>
    (_received, reply) =>
      status(reply, 429, "TooManyRequests", { headers: { "retry-after": String(seconds) } });

  it("is refused at once when the server asks for more time than there is", async () => {
    api.script(turnedAwayFor(3_600));
    using within = soon();
    const ending = await cluster.setMode(wish(), within);
    expect(within.signal.aborted).toBe(false);
    expect(ending).toMatchObject({ t: "refused", why: "other", error: { reason: "CLUSTER_UNAVAILABLE" } });
    expect(api.received).toHaveLength(1);
  });

  it("L1 is refused, not unknown, at once when the caller goes away while it waits: nothing of it was read", async () => {
    api.script(turnedAwayFor(30));
    const clock = new WaitingClock();
    await cluster.close();
    cluster = await clientOf(api, { clock });
    const caller = new AbortController();
    using within = new Deadline(systemClock, 60_000, caller.signal);
    const ending = cluster.setMode(wish(), within);
    await clock.waits(30_000);
    caller.abort(new Error("went away"));
    expect(await ending).toMatchObject({ t: "refused", why: "other", error: { reason: "CLUSTER_UNAVAILABLE" } });
    expect(api.received).toHaveLength(1);
  });
});
