import type { IncomingMessage } from "node:http";
import { backoffMs, type Clock, Deadline, pause } from "@holdfast/async";
import { watchTimings } from "@holdfast/contract";
import type { LogSink } from "../log-sink.ts";
import { at, textOf } from "../objects/json.ts";
import { pathOf, qualified, type Resource } from "../resources.ts";
import { apiAnswerOf, wordsOf } from "../transport/api-answer.ts";
import type { Transport } from "../transport/transport.ts";
import { LineSplitter } from "./line-splitter.ts";
import { SilenceBound } from "./silence-bound.ts";
import { watchEventOf } from "./watch-event.ts";

/** An object and its envelope; etcd holds 1.5 MiB. */
const lineMaxBytes = 16 * 1024 * 1024;

export interface KindWatchDeps {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly log: LogSink;
  readonly namespace: string;
  readonly resource: Resource;
  readonly labelSelector: string | undefined;
  readonly requestTimeoutMs: number;
  /** Something happened to this object. */
  readonly changed: (object: unknown) => void;
  /** Anything may have happened: what was missed is not known. */
  readonly missed: () => void;
}

/** How a stretch of watching ended. `forget`: the version that it would resume from is of no use any more. */
interface Ending {
  readonly why: string;
  readonly isFault: boolean;
  readonly forget: boolean;
  readonly retryAfterMs?: number | undefined;
}

/**
 * Follows one kind of object for as long as it runs and keeps none of them: a list (of one, for its version), then a watch from that
 * version, resumed where it broke off; a version that is gone means listing again.
 */
export class KindWatch {
  readonly #deps: KindWatchDeps;
  #version: string | undefined;
  #lastFault = "";

  constructor(deps: KindWatchDeps) {
    this.#deps = deps;
  }

  /** Runs until the signal aborts, whatever the server does. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    let faults = 0;
    while (!signal.aborted) {
      const beganMs = clock.monotonicMs();
      const ending = await this.#stretch(signal);
      if (signal.aborted) return;
      if (ending.forget) this.#version = undefined;
      this.#report(ending);
      const held = clock.monotonicMs() - beganMs >= watchTimings.steadyAfterMs;
      const waitMs = held ? Math.random() * watchTimings.resumeWithinMs : this.#backoffMs(faults, ending);
      faults = held ? 0 : faults + 1;
      await pause(clock, waitMs, signal).catch(() => undefined); // Only the signal rejects it, and the loop looks at that.
    }
  }

  #backoffMs(faults: number, ending: Ending): number {
    const wait = backoffMs(
      { firstMs: watchTimings.spacingMs, maxMs: watchTimings.backoffMaxMs },
      faults,
      Math.random(),
    );
    return Math.max(watchTimings.spacingMs, wait, Math.min(ending.retryAfterMs ?? 0, watchTimings.retryAfterMaxMs));
  }

  async #stretch(signal: AbortSignal): Promise<Ending> {
    try {
      if (this.#version === undefined) {
        const listed = await this.#list(signal);
        if (listed !== undefined) return listed;
        this.#deps.missed();
      }
      return await this.#follow(signal);
    } catch (error) {
      return { why: error instanceof Error ? error.message : String(error), isFault: true, forget: false };
    }
  }

  /** Takes the collection's version. Returns how it ended when there is none to take. */
  async #list(signal: AbortSignal): Promise<Ending | undefined> {
    const { transport, clock, namespace, resource, labelSelector, requestTimeoutMs } = this.#deps;
    using within = new Deadline(clock, requestTimeoutMs, signal);
    const path = pathOf(resource, namespace);
    const answer = await transport.send({ method: "GET", path, query: { limit: "1", labelSelector } }, within.signal);
    const version = textOf(at(answer.body, "metadata", "resourceVersion"));
    if (answer.status === 200 && version !== undefined) {
      this.#version = version;
      return undefined;
    }
    const why = `the list was answered ${answer.status}: ${wordsOf(answer)}`;
    return { why, isFault: true, forget: true, retryAfterMs: answer.retryAfterMs };
  }

  async #follow(signal: AbortSignal): Promise<Ending> {
    const { transport, clock, namespace, resource, labelSelector, requestTimeoutMs } = this.#deps;
    const seconds = Math.round(watchTimings.rotateSeconds * (0.8 + 0.2 * Math.random()));
    using whole = new Deadline(clock, seconds * 1000 + watchTimings.rotateGraceMs, signal);
    // Bounds the time to the answer's head; after that, the time without a byte.
    const silence = new SilenceBound(clock, whole.signal, requestTimeoutMs);
    try {
      const response = await transport.stream(
        {
          method: "GET",
          path: pathOf(resource, namespace),
          query: {
            watch: "true",
            allowWatchBookmarks: "true",
            resourceVersion: this.#version,
            timeoutSeconds: String(seconds),
            labelSelector,
          },
        },
        silence.signal,
      );
      if (response.statusCode !== 200) return await this.#refused(response, silence.signal);
      silence.allow(watchTimings.silenceMaxMs);
      return await this.#consume(response, silence);
    } finally {
      silence.stop();
    }
  }

  async #refused(response: IncomingMessage, signal: AbortSignal): Promise<Ending> {
    const text = await this.#deps.transport.readText(response, signal);
    const answer = apiAnswerOf(response.statusCode ?? 0, response.headers, text, this.#deps.clock.now());
    const why = `the watch was answered ${answer.status}: ${wordsOf(answer)}`;
    return { why, isFault: answer.status !== 410, forget: answer.status !== 429, retryAfterMs: answer.retryAfterMs };
  }

  async #consume(response: IncomingMessage, silence: SilenceBound): Promise<Ending> {
    response.socket.setKeepAlive(true, watchTimings.tcpKeepAliveMs);
    const lines = new LineSplitter(lineMaxBytes);
    try {
      for await (const chunk of response) {
        silence.heard();
        for (const line of lines.push(chunk)) {
          const ending = this.#take(line);
          if (ending !== undefined) return ending;
        }
      }
      return { why: "the server ended it", isFault: false, forget: false };
    } catch (error) {
      if (silence.wasSilent) return { why: "it was silent for too long", isFault: true, forget: false };
      return { why: error instanceof Error ? error.message : String(error), isFault: true, forget: false };
    }
  }

  #take(line: string): Ending | undefined {
    if (line.trim() === "") return undefined;
    const event = watchEventOf(line);
    if (event === undefined) return { why: "a line of the watch could not be read", isFault: true, forget: true };
    if (event.t === "error") {
      return { why: `the watch said ${event.code}: ${event.message}`, isFault: event.code !== 410, forget: true };
    }
    this.#version = event.version;
    if (event.t === "changed") this.#deps.changed(event.object);
    return undefined;
  }

  /** A fault that lasts is said once. */
  #report(ending: Ending): void {
    const { log, resource, namespace } = this.#deps;
    if (ending.isFault && ending.why !== this.#lastFault) {
      log.warn(`the watch of ${qualified(resource)} broke off: ${ending.why}`, { namespace });
    }
    this.#lastFault = ending.isFault ? ending.why : "";
  }
}
