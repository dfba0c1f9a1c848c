import { Deadline, pause, reopenWaitMs } from "@holdfast/async";
import { watchTimings } from "@holdfast/contract";
import type { LogSink } from "../log-sink.ts";
import { at, textOf } from "../objects/json.ts";
import { pathOf, qualified } from "../resources.ts";
import { wordsOf } from "../transport/api-answer.ts";
import type { ChangeKind, WatchEvent } from "./watch-event.ts";
import { type StretchDeps, type StretchEnd, watchStretch } from "./watch-stretch.ts";

export interface KindWatchDeps extends StretchDeps {
  readonly log: LogSink;
  /** Something happened to this object. */
  readonly changed: (object: unknown, kind: ChangeKind) => void;
  /** Anything may have happened: what was missed is not known. */
  readonly missed: () => void;
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
      const heldMs = clock.monotonicMs() - beganMs;
      const waitMs = reopenWaitMs(watchTimings, { heldMs, faults, retryAfterMs: ending.retryAfterMs });
      faults = heldMs >= watchTimings.steadyAfterMs ? 0 : faults + 1;
      await pause(clock, waitMs, signal).catch(() => undefined); // Only the signal rejects it, and the loop looks at that.
    }
  }

  async #stretch(signal: AbortSignal): Promise<StretchEnd> {
    try {
      if (this.#version === undefined) {
        const listed = await this.#list(signal);
        if (listed !== undefined) return listed;
        this.#deps.missed();
      }
      return await watchStretch(this.#deps, this.#version, { heard: (event) => this.#heard(event) }, signal);
    } catch (error) {
      return { why: error instanceof Error ? error.message : String(error), isFault: true, forget: false };
    }
  }

  /** Takes the collection's version. Returns how it ended when there is none to take. */
  async #list(signal: AbortSignal): Promise<StretchEnd | undefined> {
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

  #heard(event: Exclude<WatchEvent, { readonly t: "error" }>): void {
    this.#version = event.version;
    if (event.t === "changed") this.#deps.changed(event.object, event.kind);
  }

  /** A fault that lasts is said once. */
  #report(ending: StretchEnd): void {
    const { log, resource, namespace } = this.#deps;
    if (ending.isFault && ending.why !== this.#lastFault) {
      log.warn(`the watch of ${qualified(resource)} broke off: ${ending.why}`, { namespace });
    }
    this.#lastFault = ending.isFault ? ending.why : "";
  }
}
