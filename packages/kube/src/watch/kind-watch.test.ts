import { watchTimings } from "@holdfast/contract";
import { HandClock } from "@holdfast/testkit";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { sandboxes } from "../resources.ts";
import { LogRecord } from "../testing/fixtures.ts";
import type { ApiAnswer } from "../transport/api-answer.ts";
import type { ApiRequest, ApiTransport } from "../transport/transport.ts";
import { KindWatch } from "./kind-watch.ts";

const requestTimeoutMs = 10_000;
const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

beforeEach(() => void vi.spyOn(Math, "random").mockReturnValue(0.5));
afterEach(() => void vi.restoreAllMocks());

/** A watch of a kind, of a server that answers as the test says; `times`: when each request came. */
function watching(answers: {
  readonly list: () => Promise<ApiAnswer>;
  readonly watch?: (signal: AbortSignal) => Promise<never>;
}) {
  const clock = new HandClock();
  const log = new LogRecord();
  const asked: ApiRequest[] = [];
  const times: number[] = [];
  const note = (request: ApiRequest): void => {
    asked.push(request);
    times.push(clock.monotonicMs());
  };
  const transport: ApiTransport = {
    close: () => undefined,
    send: (request, signal) => {
      note(request);
      const over = new Promise<never>((_resolve, reject) =>
        signal.addEventListener("abort", () => reject(signal.reason)),
      );
      return Promise.race([answers.list(), over]);
    },
    stream: (request, signal) => {
      note(request);
      return answers.watch?.(signal) ?? expect.unreachable();
    },
  };
  const client = new AbortController();
  let missed = 0;
  const watch = new KindWatch({
    transport,
    clock,
    log,
    namespace: "team-a",
    resource: sandboxes,
    labelSelector: undefined,
    requestTimeoutMs,
    changed: () => undefined,
    missed: () => {
      missed += 1;
    },
  });
  const done = watch.run(client.signal);
  /** Lets time pass in steps, with what each lets happen. */
  const pass = async (ms: number): Promise<void> => {
    await settle();
    for (let passed = 0; passed < ms; passed += 100) {
      clock.pass(100);
      await settle();
    }
  };
  return { clock, log, asked, times, client, done, pass, missed: () => missed };
}

const never = () => new Promise<never>(() => undefined);
const listed = async (): Promise<ApiAnswer> => ({
  status: 200,
  body: { metadata: { resourceVersion: "7" } },
  retryAfterMs: undefined,
});

describe("B84 the watch of one kind", () => {
  it("does not wait for a list beyond the time of a request", async () => {
    const { asked, pass, client, done } = watching({ list: never });
    await pass(requestTimeoutMs - 100);
    expect(asked).toHaveLength(1);
    await pass(100 + watchTimings.backoffMaxMs);
    expect(asked.length).toBeGreaterThan(1);
    client.abort(new Error("closed"));
    await done;
  });

  it("takes no version from a list that was refused", async () => {
    const refused = async (): Promise<ApiAnswer> => ({ ...(await listed()), status: 500 });
    const { asked, pass, client, done, missed } = watching({ list: refused });
    await pass(watchTimings.backoffMaxMs);
    expect(asked.length).toBeGreaterThan(1);
    expect(asked.filter(({ query }) => query?.watch !== undefined)).toEqual([]);
    expect(missed()).toBe(0);
    client.abort(new Error("closed"));
    await done;
  });

  it("waits longer each time while it does not stand, up to a bound, and is as patient as at first after it stood", async () => {
    let standsMs = 0;
    let wait: (ms: number) => Promise<void> = never;
    const stage = watching({
      list: listed,
      watch: async () => {
        await wait(standsMs);
        throw new Error("broke off");
      },
    });
    wait = (ms) => new Promise((resolve) => void stage.clock.schedule(ms, resolve));
    const gaps = (): number[] => stage.times.slice(1).map((time, index) => time - (stage.times[index] ?? 0));
    await stage.pass(8 * watchTimings.backoffMaxMs);
    const before = gaps().slice(1); // Behind the list and its watch, which come at once.
    expect(before).toEqual([...before].sort((a, b) => a - b));
    expect(before[0]).toBeLessThan(before.at(-1) ?? 0);
    expect(before.at(-1)).toBeLessThanOrEqual(watchTimings.backoffMaxMs);
    standsMs = watchTimings.steadyAfterMs + 1_000;
    await stage.pass(2 * standsMs + watchTimings.backoffMaxMs);
    standsMs = 0;
    stage.times.length = 0;
    await stage.pass(3 * standsMs + 4 * watchTimings.backoffMaxMs + watchTimings.steadyAfterMs);
    expect(Math.min(...gaps())).toBeLessThanOrEqual(before[0] ?? 0);
    stage.client.abort(new Error("closed"));
    await stage.done;
  });

  it("is said to have broken off by the server, never by the client's own end", async () => {
    const { log, client, done } = watching({
      list: listed,
      watch: (signal) =>
        new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    });
    await settle();
    client.abort(new Error("closed"));
    await done;
    expect(log.lines).toEqual([]);
  });
});
