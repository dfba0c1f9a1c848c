import * as grpc from "@grpc/grpc-js";
import { type ExecuteResponse, ExecutionService, OutputStream } from "@holdfast/api/holdfast/v1/execution_pb";
import { WorkspaceService } from "@holdfast/api/holdfast/v1/workspace_pb";
import { HoldfastError } from "@holdfast/errors";
import { describe, expect, it } from "vitest";
import { decodeError, wireErrorOf } from "./grpc-client.testing.ts";
import { RawClient } from "./raw-http2.testing.ts";
import { listenWith } from "./test-listener.testing.ts";

const { execute } = ExecutionService.method;
const { getWorkspace } = WorkspaceService.method;

const output = (offset: number, data: Uint8Array) => ({
  event: { case: "output" as const, value: { stream: OutputStream.STDOUT, offset: BigInt(offset), data } },
});

/** Never resolves; rejects with the signal's reason. */
const untilAborted = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });

function collect(
  call: grpc.ClientReadableStream<ExecuteResponse>,
): Promise<{ responses: ExecuteResponse[]; error: grpc.ServiceError | undefined }> {
  const responses: ExecuteResponse[] = [];
  return new Promise((resolve) => {
    call.on("data", (response: ExecuteResponse) => responses.push(response));
    call.on("error", (error) => resolve({ responses, error: error as grpc.ServiceError }));
    call.on("end", () => resolve({ responses, error: undefined }));
  });
}

describe("server streams", () => {
  it("deliver every response in order, then OK", async () => {
    await using server = await listenWith({
      executions: {
        async *execute() {
          for (let at = 0; at < 1_000; at += 1) yield output(at, Uint8Array.of(at % 256));
        },
      },
    });
    const { responses, error } = await collect(server.client.stream(execute, { workspaceId: "w", command: "c" }));
    expect(error).toBeUndefined();
    expect(responses.map(({ event }) => (event.case === "output" ? Number(event.value.offset) : -1))).toEqual(
      Array.from({ length: 1_000 }, (_, at) => at),
    );
  });

  it("end with a reason after what was delivered", async () => {
    await using server = await listenWith({
      executions: {
        async *execute() {
          yield output(0, Buffer.from("abc"));
          throw new HoldfastError("EXECUTION_DETACHED", { message: "detached", metadata: { execution_id: "e" } });
        },
      },
    });
    const { responses, error } = await collect(server.client.stream(execute, { workspaceId: "w", command: "c" }));
    expect(responses).toHaveLength(1);
    expect(error && decodeError(error)).toMatchObject({
      code: grpc.status.UNKNOWN,
      reason: "EXECUTION_DETACHED",
      metadata: { execution_id: "e", workspace_id: "w" },
    });
  });

  it.each([
    ["tiny", 1],
    ["large", 32 * 1024],
  ])("hold the source back when the client does not read (%s messages), and bound memory", async (_, size) => {
    let produced = 0;
    await using server = await listenWith({
      executions: {
        async *execute() {
          const data = Buffer.alloc(size);
          for (;;) {
            yield output(produced * size, data);
            produced += 1;
          }
        },
      },
    });
    using slow = new RawClient(server.address);
    const call = slow.call(execute, { workspaceId: "w", command: "c" });
    await expect.poll(() => produced).toBeGreaterThan(0);
    // Held back: several round trips long nothing more is asked for.
    const settled = async (): Promise<number> => {
      for (;;) {
        const before = produced;
        for (let round = 0; round < 10; round += 1)
          await new Promise<void>((resolve) => slow.session.ping(() => resolve()));
        if (produced === before) return produced;
      }
    };
    const held = await settled();
    expect(held * size).toBeLessThan(2 * 1024 * 1024);
    expect(held).toBeLessThan(20_000);
    // Nobody else is slowed down, and reading on goes on where it stood.
    await wireErrorOf(server.client.unary(getWorkspace, { workspaceId: "w" }));
    call.resume();
    await expect.poll(() => produced).toBeGreaterThan(held + 100);
    call.close(8);
    await expect.poll(() => server.admission.inProgress).toBe(0);
  });
});

describe("the client's end", () => {
  it.each([
    ["a cancel", (call: grpc.ClientUnaryCall) => call.cancel()],
    ["a deadline", undefined],
  ])("%s aborts the signal of the call, once, and only then", async (_, end) => {
    const entered = Promise.withResolvers<AbortSignal>();
    await using server = await listenWith({
      workspaces: {
        getWorkspace: (_request, { signal }) => {
          entered.resolve(signal);
          return untilAborted(signal);
        },
      },
    });
    const call = server.client.unary(getWorkspace, { workspaceId: "w" }, end ? {} : { deadline: Date.now() + 100 });
    const failed = wireErrorOf(call);
    const signal = await entered.promise;
    expect(signal.aborted).toBe(false);
    end?.(call.call);
    expect((await failed).code).toBe(end ? grpc.status.CANCELLED : grpc.status.DEADLINE_EXCEEDED);
    await expect.poll(() => signal.aborted).toBe(true);
    await expect.poll(() => server.admission.inProgress).toBe(0);
    expect(server.logged()[0]).toMatchObject({ level: "info", clientGone: true });
  });

  it("does not abort the signal of a call that was answered", async () => {
    const signals: AbortSignal[] = [];
    await using server = await listenWith({
      workspaces: {
        getWorkspace: async (request, { signal }) => {
          signals.push(signal);
          return { workspace: { workspaceId: request.workspaceId } };
        },
      },
      executions: {
        async *execute(_request, { signal }) {
          signals.push(signal);
          yield output(0, Buffer.from("x"));
        },
      },
    });
    await server.client.unary(getWorkspace, { workspaceId: "w" });
    await collect(server.client.stream(execute, { workspaceId: "w", command: "c" }));
    await server.client.unary(getWorkspace, { workspaceId: "w" }); // A round trip later …
    expect(signals.map(({ aborted }) => aborted)).toEqual([false, false, false]);
  });

  it("runs the handler's own clean-up when a stream's client goes away", async () => {
    const cleanedUp = Promise.withResolvers<void>();
    await using server = await listenWith({
      executions: {
        async *execute(_request, { signal }) {
          try {
            yield output(0, Buffer.from("x"));
            await untilAborted(signal);
          } finally {
            cleanedUp.resolve();
          }
        },
      },
    });
    const call = server.client.stream(execute, { workspaceId: "w", command: "c" });
    call.on("error", () => undefined);
    call.once("data", () => call.cancel());
    await cleanedUp.promise;
    await expect.poll(() => server.admission.inProgress).toBe(0);
  });

  it("B51 leaves nothing behind after 5,000 calls that are cancelled at once, on one connection", async () => {
    let running = 0;
    const work = async (signal: AbortSignal): Promise<never> => {
      running += 1;
      try {
        return await untilAborted(signal);
      } finally {
        running -= 1;
      }
    };
    await using server = await listenWith({
      workspaces: { getWorkspace: (_request, { signal }) => work(signal) },
      executions: {
        async *execute(_request, { signal }) {
          await work(signal);
        },
      },
    });
    // Not in the same step as the call is made: grpc-js's client then sends the request and no reset, so that no server can know.
    const soon = [process.nextTick, setImmediate];
    for (let round = 0; round < 50; round += 1) {
      const ends = Array.from({ length: 100 }, (_, at) => {
        if (at % 2 === 0) {
          const call = server.client.unary(getWorkspace, { workspaceId: "w" });
          soon[(at >> 1) % 2]?.(() => call.call.cancel());
          return call.catch(() => undefined);
        }
        const call = server.client.stream(execute, { workspaceId: "w", command: "c" });
        soon[(at >> 1) % 2]?.(() => call.cancel());
        return collect(call);
      });
      await Promise.all(ends);
    }
    await expect.poll(() => [running, server.admission.inProgress]).toEqual([0, 0]);
    const errors = server.logged().filter(({ level }) => level !== "info");
    expect(errors).toEqual([]);
  }, 30_000);

  it("survives clients that break the protocol", async () => {
    await using server = await listenWith({});
    using raw = new RawClient(server.address);
    const path = "/holdfast.v1.WorkspaceService/GetWorkspace";
    const bodies = [
      Buffer.alloc(0), // no message at all
      Buffer.from([0, 0, 0]), // half a head
      Buffer.from([0, 0xff, 0xff, 0xff, 0xff]), // a length that never comes
      Buffer.from([1, 0, 0, 0, 1, 7]), // said to be compressed
      Buffer.concat([Buffer.from([0, 0, 0, 0, 0]), Buffer.from([0, 0, 0, 0, 0])]), // two messages
    ];
    for (const body of bodies) {
      const stream = raw.open(path);
      stream.end(body);
      await new Promise((resolve) => stream.once("close", resolve).resume());
    }
    for (const headers of [{ "grpc-timeout": "soon" }, { "content-type": "text/plain" }, { "grpc-encoding": "zip" }]) {
      const stream = raw.open(path, headers);
      stream.end();
      await new Promise((resolve) => stream.once("close", resolve).resume());
    }
    expect((await wireErrorOf(server.client.unary(getWorkspace, { workspaceId: "w" }))).reason).toBe(
      "WORKSPACE_NOT_FOUND",
    );
  });
});

describe("a drain", () => {
  it("refuses new calls, ends streams with their named end, and aborts no signal", async () => {
    const entered = Promise.withResolvers<AbortSignal>();
    await using server = await listenWith({
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
    const stream = collect(server.client.stream(execute, { workspaceId: "w", command: "c" }));
    const signal = await entered.promise;
    const idle = server.admission.drain();
    const { responses, error } = await stream;
    expect(responses).toHaveLength(1);
    expect(error && decodeError(error)).toMatchObject({ reason: "EXECUTION_DETACHED", metadata: { next_offset: "3" } });
    await idle;
    expect(signal.aborted).toBe(false);
    const refused = await wireErrorOf(server.client.unary(getWorkspace, { workspaceId: "w" }));
    expect(refused).toMatchObject({ code: grpc.status.UNAVAILABLE, reason: "SERVICE_DRAINING" });
  });

  it("lets unary calls finish, and lets go of those that outlast their grace", async () => {
    const finishing = Promise.withResolvers<{ workspace: { workspaceId: string } }>();
    await using server = await listenWith({
      workspaces: {
        getWorkspace: ({ workspaceId }) =>
          workspaceId === "quick" ? finishing.promise : new Promise<never>(() => undefined),
      },
    });
    const quick = server.client.unary(getWorkspace, { workspaceId: "quick" });
    const slow = wireErrorOf(server.client.unary(getWorkspace, { workspaceId: "slow" }));
    await expect.poll(() => server.admission.inProgress).toBe(2);
    const idle = server.admission.drain();
    finishing.resolve({ workspace: { workspaceId: "quick" } });
    expect((await quick).workspace?.workspaceId).toBe("quick");
    server.admission.endUnary();
    expect(await slow).toMatchObject({
      reason: "SERVICE_DRAINING",
      metadata: { operation: "GetWorkspace", workspace_id: "slow" },
    });
    await idle;
  });
});
