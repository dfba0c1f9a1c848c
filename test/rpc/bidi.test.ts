import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type ExecuteInteractiveRequestSchema,
  type ExecuteInteractiveResponse,
  OutputStream,
} from "@holdfast/api/holdfast/v1/execution_pb";
import { receiveConnectionWindowBytes } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import { describe, expect, it } from "vitest";
import { listenOnBoth } from "../../services/control-plane/src/listeners/both-listeners.testing.ts";
import { afterTurns } from "./after-turns.ts";
import { clientsBy, collect, failureOf, ways } from "./ways.ts";

type Request = MessageInitShape<typeof ExecuteInteractiveRequestSchema>;

const start: Request = { request: { case: "start", value: { workspaceId: "w", command: "c" } } };
const input = (data: Uint8Array | string): Request => ({ request: { case: "stdin", value: Buffer.from(data) } });
const output = (data: Uint8Array | string, offset = 0) => ({
  event: {
    case: "output" as const,
    value: { stream: OutputStream.STDOUT, offset: BigInt(offset), data: Buffer.from(data) },
  },
});

function textOf(response: ExecuteInteractiveResponse | undefined): string {
  return response?.event.case === "output" ? Buffer.from(response.event.value.data).toString() : "";
}

/** Requests that a test sends one by one. */
function sender() {
  const waiting: Request[] = [];
  const ended = Promise.withResolvers<void>();
  let wake = Promise.withResolvers<void>();
  let isOver = false;
  return {
    send(request: Request) {
      waiting.push(request);
      wake.resolve();
    },
    end() {
      isOver = true;
      wake.resolve();
    },
    /** The client's library has stopped pulling. */
    ended: ended.promise,
    requests: (async function* () {
      try {
        for (;;) {
          for (let next = waiting.shift(); next; next = waiting.shift()) yield next;
          if (isOver) return;
          await wake.promise;
          wake = Promise.withResolvers();
        }
      } finally {
        ended.resolve();
      }
    })(),
  };
}

const untilAborted = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });

/** Resolves once a number has been the same at so many looks in a row. */
async function settled(look: () => number): Promise<number> {
  let last = -1;
  let same = 0;
  const steady = (): number => {
    same = look() === last ? same + 1 : 0;
    last = look();
    return same;
  };
  await expect.poll(steady, { interval: 20, timeout: 15_000 }).toBeGreaterThan(15);
  return last;
}

describe.each(ways.filter(({ bidi }) => bidi))("calls that stream both ways, by $name", (way) => {
  it("answer each request as it comes, and end with the handler after the client's half-close", async () => {
    await using server = await listenOnBoth({
      executions: {
        async *executeInteractive(requests) {
          for await (const { request } of requests) if (request.case === "stdin") yield output(request.value);
          yield output("over");
        },
      },
    });
    using clients = clientsBy(way, server);
    const { send, end, requests } = sender();
    const responses = clients.executions.executeInteractive(requests)[Symbol.asyncIterator]();
    send(start);
    for (const text of ["a", "b", "c"]) {
      send(input(text));
      const next = await responses.next();
      expect(textOf(next.value)).toBe(text);
    }
    end();
    expect(textOf((await responses.next()).value)).toBe("over");
    expect((await responses.next()).done).toBe(true);
    await expect.poll(() => server.admission.inProgress).toBe(0);
    expect(server.logged()).toMatchObject([{ level: "info", rpc: "ExecuteInteractive", workspaceId: "w" }]);
    expect(server.logged()[0]).not.toHaveProperty("clientGone");
  });

  it("end with the handler while the client still sends, and the client is told", async () => {
    let signal: AbortSignal | undefined;
    await using server = await listenOnBoth({
      executions: {
        async *executeInteractive(_, context) {
          signal = context.signal;
          yield output("all");
        },
      },
    });
    using clients = clientsBy(way, server);
    const { send, requests, end } = sender();
    send(start);
    const { messages, failure } = await collect(clients.executions.executeInteractive(requests));
    expect(failure).toBeUndefined();
    expect(messages).toHaveLength(1);
    end();
    await expect.poll(() => server.admission.inProgress).toBe(0);
    expect(signal?.aborted).toBe(false);
  });

  it("check every request: the first that is refused ends the call by its reason, whatever the handler made of it", async () => {
    const heard = Promise.withResolvers<unknown>();
    await using server = await listenOnBoth({
      executions: {
        async *executeInteractive(requests) {
          try {
            for await (const _ of requests) yield output("x");
          } catch (error) {
            heard.resolve(error);
            throw new Error("something else");
          }
        },
      },
    });
    using clients = clientsBy(way, server);
    const { send, requests } = sender();
    send(start);
    send({ request: { case: "signal", value: "NONSENSE" } });
    const { messages, failure } = await collect(clients.executions.executeInteractive(requests));
    expect(messages).toHaveLength(1);
    expect(failure).toMatchObject({
      code: "InvalidArgument",
      reason: "INVALID_REQUEST",
      metadata: { field: "signal", workspace_id: "w", operation: "ExecuteInteractive" },
    });
    expect(await heard.promise).toMatchObject({ reason: "INVALID_REQUEST" });
  });

  it.each(["with its first request", "after a response"])("hear of a client that cancels %s", async (when) => {
    const cleanedUp = Promise.withResolvers<readonly unknown[]>();
    let entered = false;
    await using server = await listenOnBoth({
      executions: {
        async *executeInteractive(requests, { signal }) {
          entered = true;
          let thrown: unknown;
          try {
            yield output("x");
            for await (const _ of requests);
            thrown = "half-close";
          } catch (error) {
            thrown = error;
            throw error;
          } finally {
            cleanedUp.resolve([signal.aborted, thrown]);
          }
        },
      },
    });
    using clients = clientsBy(way, server);
    const cancel = new AbortController();
    const { send, requests } = sender();
    send(start);
    const responses = clients.executions
      .executeInteractive(requests, { signal: cancel.signal })
      [Symbol.asyncIterator]();
    const next = responses.next();
    if (when === "after a response") await next;
    cancel.abort();
    expect((await failureOf(when === "after a response" ? responses.next() : next)).code).toBe("Canceled");
    await expect.poll(() => server.admission.inProgress).toBe(0);
    if (!entered) return; // Cancelled before it came to a handler.
    const [aborted, thrown] = await cleanedUp.promise;
    expect(aborted).toBe(true);
    expect(thrown).not.toBe("half-close");
  });

  it("hold a client back whose requests nobody pulls, while responses flow", async () => {
    await using server = await listenOnBoth({
      executions: {
        async *executeInteractive(_requests, { signal }) {
          for (let at = 0; at < 100; at += 1) yield output("x", at);
          await untilAborted(signal);
        },
      },
    });
    using clients = clientsBy(way, server);
    const cancel = new AbortController();
    let sent = 0;
    const flood = (async function* () {
      yield start;
      for (;;) {
        yield input(Buffer.alloc(64 * 1024));
        sent += 64 * 1024;
      }
    })();
    const responses = clients.executions.executeInteractive(flood, { signal: cancel.signal })[Symbol.asyncIterator]();
    for (let at = 0; at < 100; at += 1) expect((await responses.next()).done).toBe(false);
    expect(await settled(() => sent)).toBeLessThan(2 * receiveConnectionWindowBytes);
    cancel.abort();
    await responses.next().catch(() => undefined);
    await expect.poll(() => server.admission.inProgress).toBe(0);
  });

  it("are held back by a client that does not read, and still take its requests", async () => {
    let produced = 0;
    let taken = 0;
    await using server = await listenOnBoth({
      executions: {
        async *executeInteractive(requests, { signal }) {
          const pull = (async () => {
            for await (const _ of requests) taken += 1;
          })();
          pull.catch(() => undefined);
          while (!signal.aborted) {
            yield output(Buffer.alloc(32 * 1024), produced * 32 * 1024);
            produced += 1;
          }
        },
      },
    });
    using clients = clientsBy(way, server);
    const cancel = new AbortController();
    const { send, requests } = sender();
    send(start);
    const responses = clients.executions
      .executeInteractive(requests, { signal: cancel.signal })
      [Symbol.asyncIterator]();
    await responses.next();
    expect((await settled(() => produced)) * 32 * 1024).toBeLessThan(16 * 1024 * 1024);
    for (let at = 0; at < 10; at += 1) send(input("x"));
    await expect.poll(() => taken).toBe(11);
    cancel.abort();
    await responses.next().catch(() => undefined);
    await expect.poll(() => server.admission.inProgress).toBe(0);
  });

  it("end by name in a drain: the requests fail, the signal does not abort", async () => {
    const heard = Promise.withResolvers<unknown>();
    const entered = Promise.withResolvers<AbortSignal>();
    await using server = await listenOnBoth({
      executions: {
        async *executeInteractive(requests, context) {
          context.endsInDrainWith(() => new HoldfastError("EXECUTION_DETACHED", { message: "let go" }));
          try {
            for await (const _ of requests) {
              yield output("x");
              entered.resolve(context.signal);
            }
            heard.resolve("half-close");
          } catch (error) {
            heard.resolve(error);
          }
        },
      },
    });
    using clients = clientsBy(way, server);
    const { send, requests } = sender();
    send(start);
    const all = collect(clients.executions.executeInteractive(requests));
    const signal = await entered.promise;
    const idle = server.admission.drain();
    expect((await all).failure).toMatchObject({ reason: "EXECUTION_DETACHED", metadata: { workspace_id: "w" } });
    expect(await heard.promise).toMatchObject({ reason: "SERVICE_DRAINING" });
    await idle;
    expect(signal.aborted).toBe(false);
    const late = await collect(clients.executions.executeInteractive(one(start)));
    expect(late.failure).toMatchObject({ code: "Unavailable", reason: "SERVICE_DRAINING" });
  });

  it("leave nothing behind after 2,000 that are cancelled at once", async () => {
    let running = 0;
    let begun = 0;
    await using server = await listenOnBoth({
      executions: {
        async *executeInteractive(requests, { signal }) {
          running += 1;
          begun += 1;
          try {
            if (running % 2 === 0) for await (const _ of requests);
            await untilAborted(signal);
          } finally {
            running -= 1;
          }
        },
      },
    });
    using clients = clientsBy(way, server);
    for (let round = 0; round < 20; round += 1) {
      const ends = Array.from({ length: 100 }, (_, at) => {
        const cancel = new AbortController();
        const { send, requests } = sender();
        send(start);
        const call = collect(clients.executions.executeInteractive(requests, { signal: cancel.signal }));
        afterTurns(at % 25, () => cancel.abort());
        return call;
      });
      await Promise.all(ends);
    }
    expect(begun).toBeGreaterThan(100); // Not all of them were gone before.
    await expect.poll(() => [running, server.admission.inProgress], { timeout: 10_000 }).toEqual([0, 0]);
    expect(server.logged().filter(({ level }) => level !== "info")).toEqual([]);
  }, 60_000);
});

describe.each(ways.filter(({ bidi }) => !bidi))("calls that stream both ways, by $name", (way) => {
  it("are refused by name, and other calls go on", async () => {
    await using server = await listenOnBoth({
      executions: {
        async *executeInteractive(requests) {
          for await (const _ of requests) yield output("never");
        },
      },
    });
    using clients = clientsBy(way, server);
    const { failure } = await collect(clients.executions.executeInteractive(one(start)));
    expect(failure).toMatchObject({
      code: "Unimplemented",
      reason: "STREAM_NEEDS_HTTP2",
      metadata: { operation: "ExecuteInteractive" },
    });
    expect(await failureOf(clients.workspaces.getWorkspace({ workspaceId: "w" }))).toMatchObject({
      reason: "WORKSPACE_NOT_FOUND",
    });
    expect(server.logged()[0]).toMatchObject({ rpc: "ExecuteInteractive", reason: "STREAM_NEEDS_HTTP2" });
  });
});

async function* one<T>(value: T): AsyncGenerator<T> {
  yield value;
}
