import { watchTimings } from "@holdfast/contract";
import { HandClock } from "@holdfast/testkit";
import { describe, expect, it } from "vitest";
import { sandboxes } from "../resources.ts";
import type { ApiRequest, ApiTransport } from "../transport/transport.ts";
import { type StretchEnd, watchStretch } from "./watch-stretch.ts";

const requestTimeoutMs = 10_000;

/** A watch whose bytes come when the test says so, and whose time passes when it does. */
function watching(answersAtOnce = true, client = new AbortController()) {
  const clock = new HandClock();
  const head = Promise.withResolvers<void>();
  if (answersAtOnce) head.resolve();
  let wake = Promise.withResolvers<void>();
  const waiting: (string | undefined)[] = [];
  const asked: { request: ApiRequest; signal: AbortSignal; keepAliveMs: number | undefined }[] = [];
  const aborted = (signal: AbortSignal) =>
    new Promise<never>((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  const transport: ApiTransport = {
    send: () => expect.unreachable(),
    close: () => undefined,
    stream: async (request, signal, keepAliveMs) => {
      asked.push({ request, signal, keepAliveMs });
      signal.throwIfAborted();
      const over = aborted(signal);
      over.catch(() => undefined);
      await Promise.race([head.promise, over]);
      return {
        statusCode: 200,
        headers: {},
        async *[Symbol.asyncIterator]() {
          for (;;) {
            while (waiting.length > 0) {
              const text = waiting.shift();
              if (text === undefined) return;
              yield Buffer.from(text);
            }
            await Promise.race([wake.promise, over]);
          }
        },
      };
    },
  };
  const versions: string[] = [];
  const deps = { transport, clock, namespace: "team-a", resource: sandboxes, labelSelector: "a=b", requestTimeoutMs };
  let end: StretchEnd | undefined;
  const done = watchStretch(deps, "40", { heard: ({ version }) => void versions.push(version) }, client.signal);
  void done.then((is) => {
    end = is;
  });
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  return {
    clock,
    asked,
    versions,
    client,
    done,
    end: () => end,
    answers: async () => {
      head.resolve();
      await settle();
    },
    pass: async (ms: number) => {
      clock.pass(ms);
      await settle();
    },
    /** Undefined: the server ends it. */
    says: async (text: string | undefined) => {
      waiting.push(text);
      wake.resolve();
      wake = Promise.withResolvers();
      await settle();
    },
  };
}

const bookmark = (version: string) =>
  `${JSON.stringify({ type: "BOOKMARK", object: { metadata: { resourceVersion: version } } })}\n`;

describe("L37 one stretch of a watch", () => {
  it("asks for its version and label, with bookmarks, for somewhat less than the time after which it is rotated, and is probed", async () => {
    const { asked, says } = watching();
    await says(undefined);
    expect(asked).toHaveLength(1);
    const { request, keepAliveMs } = asked[0] ?? expect.unreachable();
    expect(request.query).toMatchObject({
      watch: "true",
      allowWatchBookmarks: "true",
      resourceVersion: "40",
      labelSelector: "a=b",
    });
    const seconds = Number(request.query?.timeoutSeconds);
    expect(seconds).toBeGreaterThanOrEqual(Math.round(watchTimings.rotateSeconds * 0.8));
    expect(seconds).toBeLessThanOrEqual(watchTimings.rotateSeconds);
    expect(keepAliveMs).toBe(watchTimings.tcpKeepAliveMs);
  });

  it("is given up when its answer does not begin in the time of a request", async () => {
    const { pass, end, done } = watching(false);
    await pass(requestTimeoutMs - 1);
    expect(end()).toBeUndefined();
    await pass(1);
    expect(await done).toMatchObject({ isFault: true, forget: false });
  });

  it("may be silent for as long from its answer's head on, however long that took", async () => {
    const { pass, answers, end, done } = watching(false);
    await pass(requestTimeoutMs - 1);
    await answers();
    await pass(watchTimings.silenceMaxMs - 1);
    expect(end()).toBeUndefined();
    await pass(1);
    expect(await done).toMatchObject({ why: "it was silent for too long" });
  });

  it("is over at once where its client had gone before", async () => {
    const gone = new AbortController();
    gone.abort(new Error("gone"));
    const { asked, done } = watching(false, gone);
    expect(await done).toMatchObject({ why: "gone", isFault: true });
    expect(asked.every(({ signal }) => signal.aborted)).toBe(true);
  });

  it("stands as long as a byte comes in time, though it be half a line or an empty one, and ends when none does", async () => {
    const { says, pass, end, done, versions } = watching();
    await says(`\n${bookmark("41")}  \n`);
    // Three waits that together are longer than the silence that is borne, and shorter than a stretch.
    for (const text of ["\n", bookmark("42").slice(0, 9), bookmark("42").slice(9)]) {
      await pass(0.55 * watchTimings.silenceMaxMs);
      await says(text);
    }
    expect(versions).toEqual(["41", "42"]);
    await pass(watchTimings.silenceMaxMs - 1);
    expect(end()).toBeUndefined();
    await pass(1);
    expect(await done).toEqual({ why: "it was silent for too long", isFault: true, forget: false });
  });

  it("is ended here when the server does not rotate it", async () => {
    const { says, pass, end, clock } = watching();
    const longestMs = watchTimings.rotateSeconds * 1_000 + watchTimings.rotateGraceMs;
    await says("");
    while (end() === undefined && clock.monotonicMs() < 2 * longestMs) {
      await pass(10_000);
      await says(bookmark("41"));
    }
    expect(end()).toMatchObject({ isFault: true, forget: false });
    expect(clock.monotonicMs()).toBeLessThanOrEqual(longestMs + 10_000);
  });

  it("leaves no timer and no request behind, however it ends", async () => {
    for (const ends of ["by the server", "by its signal"]) {
      const { says, client, done, clock, asked } = watching();
      await says(bookmark("41"));
      if (ends === "by the server") await says(undefined);
      else client.abort(new Error("gone"));
      await done;
      expect(clock.pending).toBe(0);
      expect(asked[0]?.signal.aborted).toBe(true);
    }
  });
});
