import { type Clock, Deadline } from "@holdfast/async";
import { watchTimings } from "@holdfast/contract";
import { pathOf, type Resource } from "../resources.ts";
import { apiAnswerOf, wordsOf } from "../transport/api-answer.ts";
import { type ApiStream, type ApiTransport, readText } from "../transport/transport.ts";
import { LineSplitter } from "./line-splitter.ts";
import { SilenceBound } from "./silence-bound.ts";
import { type WatchEvent, watchEventOf } from "./watch-event.ts";

/** An object and its envelope; etcd holds 1.5 MiB. */
const lineMaxBytes = 16 * 1024 * 1024;

export interface StretchDeps {
  readonly transport: ApiTransport;
  readonly clock: Clock;
  readonly namespace: string;
  readonly resource: Resource;
  readonly labelSelector: string | undefined;
  readonly requestTimeoutMs: number;
}

export interface StretchListener {
  /** The server has taken the watch. */
  readonly opened?: () => void;
  readonly heard: (event: Exclude<WatchEvent, { readonly t: "error" }>) => void;
}

/** How a stretch of watching ended. */
export interface StretchEnd {
  readonly why: string;
  readonly isFault: boolean;
  /** The version that it would resume from is of no use any more. */
  readonly forget: boolean;
  /** The server said so by a 410. */
  readonly isExpired?: boolean;
  readonly retryAfterMs?: number | undefined;
}

/** One watch of a kind, from a version until its connection ends, whoever ends it. Never rejects. */
export async function watchStretch(
  deps: StretchDeps,
  from: string | undefined,
  listener: StretchListener,
  signal: AbortSignal,
): Promise<StretchEnd> {
  const seconds = Math.round(watchTimings.rotateSeconds * (0.8 + 0.2 * Math.random()));
  using whole = new Deadline(deps.clock, seconds * 1000 + watchTimings.rotateGraceMs, signal);
  // Bounds the time to the answer's head; after that, the time without a byte.
  const silence = new SilenceBound(deps.clock, whole.signal, deps.requestTimeoutMs);
  const query = {
    watch: "true",
    allowWatchBookmarks: "true",
    resourceVersion: from,
    timeoutSeconds: String(seconds),
    labelSelector: deps.labelSelector,
  };
  try {
    const path = pathOf(deps.resource, deps.namespace);
    const response = await deps.transport.stream(
      { method: "GET", path, query },
      silence.signal,
      watchTimings.tcpKeepAliveMs,
    );
    if (response.statusCode !== 200) return await refused(deps, response, silence.signal);
    silence.allow(watchTimings.silenceMaxMs);
    listener.opened?.();
    return await consume(response, listener, silence);
  } catch (error) {
    return { why: error instanceof Error ? error.message : String(error), isFault: true, forget: false };
  } finally {
    silence.stop();
  }
}

async function refused(deps: StretchDeps, response: ApiStream, signal: AbortSignal): Promise<StretchEnd> {
  const text = await readText(response, signal);
  const answer = apiAnswerOf(response.statusCode ?? 0, response.headers, text, deps.clock.now());
  const isExpired = answer.status === 410;
  const why = `the watch was answered ${answer.status}: ${wordsOf(answer)}`;
  return { why, isFault: !isExpired, forget: answer.status !== 429, isExpired, retryAfterMs: answer.retryAfterMs };
}

async function consume(response: ApiStream, listener: StretchListener, silence: SilenceBound): Promise<StretchEnd> {
  const lines = new LineSplitter(lineMaxBytes);
  try {
    for await (const chunk of response) {
      silence.heard();
      for (const line of lines.push(chunk)) {
        const ending = take(line, listener);
        if (ending !== undefined) return ending;
      }
    }
    return { why: "the server ended it", isFault: false, forget: false };
  } catch (error) {
    if (silence.wasSilent) return { why: "it was silent for too long", isFault: true, forget: false };
    return { why: error instanceof Error ? error.message : String(error), isFault: true, forget: false };
  }
}

function take(line: string, listener: StretchListener): StretchEnd | undefined {
  if (line.trim() === "") return undefined;
  const event = watchEventOf(line);
  if (event === undefined) return { why: "a line of the watch could not be read", isFault: true, forget: true };
  if (event.t === "error") {
    const isExpired = event.code === 410;
    return { why: `the watch said ${event.code}: ${event.message}`, isFault: !isExpired, forget: true, isExpired };
  }
  listener.heard(event);
  return undefined;
}
