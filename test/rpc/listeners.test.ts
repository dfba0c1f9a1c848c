import { OutputStream } from "@holdfast/api/holdfast/v1/execution_pb";
import { requestMaxBytes } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import { describe, expect, it } from "vitest";
import { listenOnBoth } from "../../services/control-plane/src/listeners/both-listeners.testing.ts";
import { afterTurns } from "./after-turns.ts";
import { clientsBy, collect, failureOf, ways } from "./ways.ts";

const mib = 1024 * 1024;
const command = { workspaceId: "w", command: "c" };

const output = (offset: number, data: Uint8Array) => ({
  event: { case: "output" as const, value: { stream: OutputStream.STDOUT, offset: BigInt(offset), data } },
});

/** Never resolves; rejects with the signal's reason. */
const untilAborted = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });

/** Resolves once a number has been the same at so many looks in a row. */
async function settled(look: () => number): Promise<number> {
  let last = -1;
  let same = 0;
  await expect
    .poll(
      () => {
        same = look() === last ? same + 1 : 0;
        last = look();
        return same;
      },
      { interval: 20, timeout: 15_000 },
    )
    .toBeGreaterThan(15);
  return last;
}

describe.each(ways)("handlers by $name", (way) => {
  it("answer a unary call, and see its headers and its deadline", async () => {
    await using server = await listenOnBoth({
      workspaces: {
        getWorkspace: async ({ workspaceId }, { header, deadline, peer }) => {
          const leftMs = (deadline?.getTime() ?? 0) - Date.now();
          expect(leftMs).toBeGreaterThan(50_000);
          expect(leftMs).toBeLessThanOrEqual(60_000);
          expect(peer).toMatch(/127\.0\.0\.1:\d+/);
          return { workspace: { workspaceId, template: header("x-said") ?? "nothing" } };
        },
      },
    });
    using clients = clientsBy(way, server);
    const { workspace } = await clients.workspaces.getWorkspace(
      { workspaceId: "w" },
      { timeoutMs: 60_000, headers: { "x-said": "hello" } },
    );
    expect(workspace).toMatchObject({ workspaceId: "w", template: "hello" });
    expect(server.logged()[0]).toMatchObject({ level: "info", rpc: "GetWorkspace", workspaceId: "w" });
  });

  it("fail with a reason, the metadata of all, and RetryInfo", async () => {
    await using server = await listenOnBoth({
      workspaces: {
        getWorkspace: () =>
          Promise.reject(
            new HoldfastError("CLUSTER_UNAVAILABLE", { message: "Not there – é.", metadata: { budget_ms: "10" } }),
          ),
      },
    });
    using clients = clientsBy(way, server);
    expect(await failureOf(clients.workspaces.getWorkspace({ workspaceId: "w1" }))).toMatchObject({
      code: "Unavailable",
      message: "Not there – é.",
      reason: "CLUSTER_UNAVAILABLE",
      metadata: { operation: "GetWorkspace", workspace_id: "w1", sandbox: "namzu-ws-w1", budget_ms: "10" },
      retrySeconds: 2n,
    });
  });

  it("name every violation at once, on unary calls and on streams", async () => {
    await using server = await listenOnBoth({});
    using clients = clientsBy(way, server);
    const request = { workspaceId: "Not_One", command: "", args: ["a\0b"], env: { "1x": "y" } };
    const violations = ["workspace_id", "command", "args[0]", 'env["1x"]'];
    const unary = await failureOf(clients.executions.runCommand(request));
    expect(unary).toMatchObject({ code: "InvalidArgument", reason: "INVALID_REQUEST", violations });
    const { failure } = await collect(clients.executions.execute(request));
    expect(failure).toMatchObject({ code: "InvalidArgument", reason: "INVALID_REQUEST", violations });
  });

  it("refuse metadata that is no epoch (L20)", async () => {
    await using server = await listenOnBoth({});
    using clients = clientsBy(way, server);
    const headers = { "holdfast-epoch": "latest" };
    const failure = await failureOf(clients.workspaces.openWorkspace({ workspaceId: "w1" }, { headers }));
    expect(failure).toMatchObject({ code: "InvalidArgument", reason: "INVALID_REQUEST" });
    expect(failure.metadata.field).toBe("metadata holdfast-epoch");
  });

  it("stream every response in order, then OK", async () => {
    await using server = await listenOnBoth({
      executions: {
        async *execute() {
          for (let at = 0; at < 1_000; at += 1) yield output(at, Uint8Array.of(at % 256));
        },
      },
    });
    using clients = clientsBy(way, server);
    const { messages, failure } = await collect(clients.executions.execute(command));
    expect(failure).toBeUndefined();
    expect(messages.map(({ event }) => (event.case === "output" ? Number(event.value.offset) : -1))).toEqual(
      Array.from({ length: 1_000 }, (_, at) => at),
    );
  });

  it("hear a first message at once, and a failure after what was delivered", async () => {
    const go = Promise.withResolvers<void>();
    await using server = await listenOnBoth({
      executions: {
        async *execute() {
          yield output(0, Buffer.from("abc"));
          await go.promise;
          throw new HoldfastError("EXECUTION_DETACHED", { message: "detached", metadata: { execution_id: "e" } });
        },
      },
    });
    using clients = clientsBy(way, server);
    const stream = clients.executions.execute(command)[Symbol.asyncIterator]();
    expect((await stream.next()).value?.event.case).toBe("output");
    go.resolve();
    expect(await failureOf(stream.next())).toMatchObject({
      code: "Unknown",
      reason: "EXECUTION_DETACHED",
      metadata: { execution_id: "e", workspace_id: "w" },
    });
  });

  it("end when a stream's client cancels: signal, clean-up, place and log", async () => {
    const cleanedUp = Promise.withResolvers<unknown>();
    await using server = await listenOnBoth({
      executions: {
        async *execute(_request, { signal }) {
          try {
            yield output(0, Buffer.from("x"));
            await untilAborted(signal);
          } finally {
            cleanedUp.resolve(signal.aborted);
          }
        },
      },
    });
    using clients = clientsBy(way, server);
    const cancel = new AbortController();
    const stream = clients.executions.execute(command, { signal: cancel.signal })[Symbol.asyncIterator]();
    await stream.next();
    cancel.abort();
    expect((await failureOf(stream.next())).code).toBe("Canceled");
    expect(await cleanedUp.promise).toBe(true);
    await expect.poll(() => server.admission.inProgress).toBe(0);
    expect(server.logged()).toMatchObject([{ level: "info", clientGone: true }]);
  });

  it("are held back by a client that does not read, and end when it cancels while they wait for it", async () => {
    let produced = 0;
    let cleanedUp = false;
    let signal: AbortSignal | undefined;
    await using server = await listenOnBoth({
      executions: {
        async *execute(_request, context) {
          signal = context.signal;
          const data = Buffer.alloc(32 * 1024);
          try {
            for (;;) {
              yield output(produced * data.length, data);
              produced += 1;
            }
          } finally {
            cleanedUp = true;
          }
        },
      },
    });
    using clients = clientsBy(way, server);
    const cancel = new AbortController();
    const stream = clients.executions.execute(command, { signal: cancel.signal })[Symbol.asyncIterator]();
    await stream.next();
    // HTTP/1.1 has no window of its own: the kernel's buffers of both sides fill first.
    expect((await settled(() => produced)) * 32 * 1024).toBeLessThan(16 * mib);
    // Nobody else is slowed down.
    expect((await failureOf(clients.workspaces.getWorkspace({ workspaceId: "w" }))).reason).toBe("WORKSPACE_NOT_FOUND");
    cancel.abort();
    await stream.next().catch(() => undefined);
    await expect.poll(() => [signal?.aborted, cleanedUp, server.admission.inProgress]).toEqual([true, true, 0]);
  });

  it("leave nothing behind after 5,000 calls that are cancelled at once", async () => {
    let running = 0;
    let begun = 0;
    const work = async (signal: AbortSignal): Promise<never> => {
      running += 1;
      begun += 1;
      try {
        return await untilAborted(signal);
      } finally {
        running -= 1;
      }
    };
    await using server = await listenOnBoth({
      workspaces: { getWorkspace: (_request, { signal }) => work(signal) },
      executions: {
        async *execute(_request, { signal }) {
          await work(signal);
        },
      },
    });
    using clients = clientsBy(way, server);
    for (let round = 0; round < 50; round += 1) {
      const ends = Array.from({ length: 100 }, (_, at) => {
        const cancel = new AbortController();
        const { signal } = cancel;
        const call =
          at % 2 === 0
            ? clients.workspaces.getWorkspace({ workspaceId: "w" }, { signal }).catch(() => undefined)
            : collect(clients.executions.execute(command, { signal }));
        afterTurns(at % 4 < 2 ? 1 : 2 + (at % 23), () => cancel.abort());
        return call;
      });
      await Promise.all(ends);
    }
    expect(begun).toBeGreaterThan(100); // Not all of them were gone before.
    await expect.poll(() => [running, server.admission.inProgress], { timeout: 10_000 }).toEqual([0, 0]);
    expect(server.logged().filter(({ level }) => level !== "info")).toEqual([]);
    // The connection is as good as before.
    const alive = new AbortController();
    const last = clients.workspaces.getWorkspace({ workspaceId: "w" }, { signal: alive.signal }).catch(() => undefined);
    await expect.poll(() => running).toBe(1);
    alive.abort();
    await last;
  }, 60_000);

  it("hear of a deadline that passes, as does the client", async () => {
    const signals: AbortSignal[] = [];
    await using server = await listenOnBoth({
      workspaces: {
        getWorkspace: (_request, { signal }) => {
          signals.push(signal);
          return untilAborted(signal);
        },
      },
      executions: {
        async *execute(_request, { signal }) {
          signals.push(signal);
          yield output(0, Buffer.from("x"));
          await untilAborted(signal);
        },
      },
    });
    using clients = clientsBy(way, server);
    const unary = failureOf(clients.workspaces.getWorkspace({ workspaceId: "w" }, { timeoutMs: 200 }));
    const stream = collect(clients.executions.execute(command, { timeoutMs: 200 }));
    expect((await unary).code).toBe("DeadlineExceeded");
    expect((await stream).failure?.code).toBe("DeadlineExceeded");
    await expect.poll(() => signals.map(({ aborted }) => aborted)).toEqual([true, true]);
    await expect.poll(() => server.admission.inProgress).toBe(0);
  });

  it("are not cut short by a deadline beyond what timers take", async () => {
    await using server = await listenOnBoth({
      workspaces: { getWorkspace: async ({ workspaceId }) => ({ workspace: { workspaceId } }) },
    });
    using clients = clientsBy(way, server);
    // One that a client's own timer still takes; the raw test sends longer ones.
    const options = { timeoutMs: 2 ** 31 - 1 };
    expect((await clients.workspaces.getWorkspace({ workspaceId: "w" }, options)).workspace?.workspaceId).toBe("w");
  });

  it("do not take an answered call's end for the client's", async () => {
    const signals: AbortSignal[] = [];
    await using server = await listenOnBoth({
      workspaces: {
        getWorkspace: async ({ workspaceId }, { signal }) => {
          signals.push(signal);
          return { workspace: { workspaceId } };
        },
      },
      executions: {
        async *execute(_request, { signal }) {
          signals.push(signal);
          yield output(0, Buffer.from("x"));
        },
      },
    });
    using clients = clientsBy(way, server);
    await clients.workspaces.getWorkspace({ workspaceId: "w" });
    await collect(clients.executions.execute(command));
    await clients.workspaces.getWorkspace({ workspaceId: "w" }); // A round trip later …
    expect(signals.map(({ aborted }) => aborted)).toEqual([false, false, false]);
  });

  it("take and give large messages, and refuse one that is too large by its reason", async () => {
    await using server = await listenOnBoth({
      executions: {
        runCommand: async ({ stdin }) => ({ executionId: String(stdin.length), stdout: Buffer.alloc(8 * mib, 7) }),
      },
    });
    using clients = clientsBy(way, server);
    const answer = await clients.executions.runCommand({ ...command, stdin: Buffer.alloc(2 * mib) });
    expect(answer.executionId).toBe(String(2 * mib));
    expect(Buffer.alloc(8 * mib, 7).equals(answer.stdout)).toBe(true);
    const large = { ...command, stdin: Buffer.alloc(requestMaxBytes) };
    expect(await failureOf(clients.executions.runCommand(large))).toMatchObject({
      code: "ResourceExhausted",
      reason: "MESSAGE_TOO_LARGE",
    });
    const { failure } = await collect(clients.executions.execute(large));
    expect(failure).toMatchObject({ code: "ResourceExhausted", reason: "MESSAGE_TOO_LARGE" });
    await expect.poll(() => server.admission.inProgress).toBe(0);
  });

  it("drain: new calls are refused, streams end by name, unary calls finish, no signal aborts", async () => {
    const entered = Promise.withResolvers<AbortSignal>();
    const finishing = Promise.withResolvers<{ workspace: { workspaceId: string } }>();
    await using server = await listenOnBoth({
      workspaces: { getWorkspace: () => finishing.promise },
      executions: {
        async *execute(_request, context) {
          context.endsInDrainWith(
            () => new HoldfastError("EXECUTION_DETACHED", { message: "let go", metadata: { next_offset: "3" } }),
          );
          yield output(0, Buffer.from("abc"));
          entered.resolve(context.signal);
          await untilAborted(context.signal);
        },
      },
    });
    using clients = clientsBy(way, server);
    const stream = collect(clients.executions.execute(command));
    const unary = clients.workspaces.getWorkspace({ workspaceId: "quick" });
    const signal = await entered.promise;
    await expect.poll(() => server.admission.inProgress).toBe(2);
    const idle = server.admission.drain();
    const { messages, failure } = await stream;
    expect(messages).toHaveLength(1);
    expect(failure).toMatchObject({ reason: "EXECUTION_DETACHED", metadata: { next_offset: "3" } });
    const refused = await failureOf(clients.workspaces.openWorkspace({ workspaceId: "w" }));
    expect(refused).toMatchObject({ code: "Unavailable", reason: "SERVICE_DRAINING" });
    finishing.resolve({ workspace: { workspaceId: "quick" } });
    expect((await unary).workspace?.workspaceId).toBe("quick");
    await idle;
    expect(signal.aborted).toBe(false);
  });

  it("do not take a close by force for the client's end: a drain cannot wait for one that does not read", async () => {
    let produced = 0;
    let signal: AbortSignal | undefined;
    const server = await listenOnBoth({
      executions: {
        async *execute(_request, context) {
          signal = context.signal;
          for (;;) {
            yield output(produced * 32 * 1024, Buffer.alloc(32 * 1024));
            produced += 1;
          }
        },
      },
    });
    using clients = clientsBy(way, server);
    const cancel = new AbortController();
    const stream = clients.executions.execute(command, { signal: cancel.signal })[Symbol.asyncIterator]();
    await stream.next();
    await settled(() => produced);
    await server[Symbol.asyncDispose]();
    // grpc-js's client takes half a minute to notice: it is told to give up.
    cancel.abort();
    const rest = async (): Promise<void> => {
      while (!(await stream.next()).done);
    };
    await failureOf(rest());
    expect(signal?.aborted).toBe(false);
  });

  it("take a client's stream to its half-close, and never one that was cut off for whole", async () => {
    let received = 0;
    const ends: string[] = [];
    await using server = await listenOnBoth({
      files: {
        async writeFile(requests) {
          received = 0;
          try {
            for await (const { part } of requests) if (part.case === "data") received += part.value.length;
          } catch (error) {
            ends.push(error instanceof Error ? error.name : "?");
            throw error;
          }
          ends.push("whole");
          return { file: { path: "f", size: BigInt(received) } };
        },
      },
    });
    using clients = clientsBy(way, server);
    const start = { part: { case: "start" as const, value: { workspaceId: "w", path: "f" } } };
    const data = { part: { case: "data" as const, value: Buffer.alloc(64 * 1024) } };
    const { file } = await clients.files.writeFile(
      (async function* () {
        yield start;
        for (let at = 0; at < 100; at += 1) yield data;
      })(),
    );
    expect(Number(file?.size)).toBe(100 * 64 * 1024);
    const cancel = new AbortController();
    const cut = clients.files
      .writeFile(
        (async function* () {
          yield start;
          yield data;
          await untilAborted(cancel.signal);
        })(),
        { signal: cancel.signal },
      )
      .catch(() => undefined);
    await expect.poll(() => received).toBe(64 * 1024);
    cancel.abort();
    await cut;
    await expect.poll(() => server.admission.inProgress).toBe(0);
    expect(ends).toEqual(["whole", "AbortError"]);
  });
});
