import { callsMax } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import type { MountedMethod } from "../service-implementation.ts";

/**
 * Counts the calls in progress and ends them at a drain: from `drain()` on new calls are refused, streams end at once, unary calls
 * when their grace is over.
 */
export class Admission {
  readonly #streamsEnd = new AbortController();
  readonly #unaryEnd = new AbortController();
  readonly #limit: number;
  #inProgress = 0;
  #streams = 0;
  #whenIdle: (() => void) | undefined;

  constructor(limit = callsMax) {
    this.#limit = limit;
  }

  /** Aborts when calls of this kind are to be let go: those that have one answer may still give it in their grace. */
  endOf(kind: MountedMethod["kind"]): AbortSignal {
    return kind === "server_streaming" || kind === "bidi_streaming" ? this.#streamsEnd.signal : this.#unaryEnd.signal;
  }

  get inProgress(): number {
    return this.#inProgress;
  }

  /** Those among them that are streams, either way. */
  get streams(): number {
    return this.#streams;
  }

  /** Admits a call, or throws. The returned function ends it; whoever enters calls it once. */
  enter(kind: MountedMethod["kind"] = "unary"): () => void {
    if (this.#streamsEnd.signal.aborted) throw drainingError("The call was not carried out");
    if (this.#inProgress >= this.#limit) {
      throw new HoldfastError("STREAM_CAPACITY", {
        message: `The call was not carried out: ${this.#limit} calls are in progress, which is all that one process carries. Try again later.`,
        metadata: { limit: String(this.#limit) },
      });
    }
    const streams = kind === "unary" ? 0 : 1;
    this.#inProgress += 1;
    this.#streams += streams;
    return () => {
      this.#inProgress -= 1;
      this.#streams -= streams;
      if (this.#inProgress === 0) this.#whenIdle?.();
    };
  }

  /** Refuses new calls and ends streams. Resolves when no call is in progress. */
  drain(): Promise<void> {
    this.#streamsEnd.abort();
    if (this.#inProgress === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#whenIdle = resolve;
    });
  }

  /** Ends the calls with one answer that are still in progress. */
  endUnary(): void {
    this.#unaryEnd.abort();
  }
}

/** SERVICE_DRAINING. `what` says what became of the call. */
export function drainingError(what: string): HoldfastError {
  return new HoldfastError("SERVICE_DRAINING", {
    message: `${what}: this process is stopping. Programs in workspaces run on. Call again; another process, or this one when it is back, will serve it.`,
  });
}
