import { type BackoffPolicy, backoffMs, type Clock, type Deadline, pause } from "@holdfast/async";
import type { HoldfastError } from "@holdfast/errors";
import type { Attempt } from "./attempt.ts";
import { ObjectUnreadable } from "./objects/json.ts";
import { forbidden, unavailable } from "./refusals.ts";
import { type ApiAnswer, saysAbsent, wordsOf } from "./transport/api-answer.ts";
import { NoAnswer } from "./transport/no-answer.ts";
import type { ApiTransport } from "./transport/transport.ts";

/** Waits between tries of a read, where the server names none. */
export const readBackoff: BackoffPolicy = { firstMs: 100, maxMs: 3_000 };

export interface ReaderDeps {
  readonly transport: ApiTransport;
  readonly clock: Clock;
  /** How long one try may take. */
  readonly requestTimeoutMs: number;
}

/** What a read found. `refused` is an answer that no further try would change. */
export type Found =
  | { readonly t: "found"; readonly body: unknown }
  | { readonly t: "absent" }
  | { readonly t: "refused"; readonly answer: ApiAnswer; readonly error: HoldfastError };

/** Uncached reads, tried again on 429, 5xx and lost answers until their deadline. (L38) */
export class Reader {
  readonly #deps: ReaderDeps;

  constructor(deps: ReaderDeps) {
    this.#deps = deps;
  }

  /**
   * Throws CLUSTER_UNAVAILABLE when the deadline runs out, and the caller's own reason when it cancelled.
   */
  async find(attempt: Attempt, within: Deadline): Promise<Found> {
    let last: Failure | undefined;
    for (let tries = 0; ; tries += 1) {
      const failure = await this.#try(attempt, within, last);
      if ("found" in failure) return failure.found;
      last = failure;
      const waitMs = failure.retryAfterMs ?? backoffMs(readBackoff, tries, Math.random());
      if (waitMs >= within.remainingMs()) throw unavailable(attempt, failure.why, failure.cause);
      await this.#pauseOr(attempt, waitMs, within, failure);
    }
  }

  /** The parsed object; undefined when it is not there. Any refusal is thrown. */
  async read<Value>(attempt: Attempt, parse: (body: unknown) => Value, within: Deadline): Promise<Value | undefined> {
    const found = await this.find(attempt, within);
    if (found.t === "absent") return undefined;
    if (found.t === "refused") throw found.error;
    return this.parse(attempt, found.body, parse);
  }

  /** As `read`, for what is always there: a collection. */
  async require<Value>(attempt: Attempt, parse: (body: unknown) => Value, within: Deadline): Promise<Value> {
    const value = await this.read(attempt, parse, within);
    if (value === undefined) throw unavailable(attempt, "the API server says that it is not there");
    return value;
  }

  /** What `parse` makes of the body; an unreadable one is CLUSTER_UNAVAILABLE naming the member at fault. */
  parse<Body, Value>(attempt: Attempt, body: Body, parse: (body: Body) => Value): Value {
    try {
      return parse(body);
    } catch (error) {
      if (!(error instanceof ObjectUnreadable)) throw error;
      throw unavailable(attempt, `what the API server sent cannot be read: ${error.message}`, error);
    }
  }

  /** `last`: how the try before this one failed, which says more than that this one was cut off. */
  async #try(
    attempt: Attempt,
    within: Deadline,
    last: Failure | undefined,
  ): Promise<{ readonly found: Found } | Failure> {
    using one = within.within(this.#deps.requestTimeoutMs);
    let answer: ApiAnswer;
    try {
      answer = await this.#deps.transport.send(attempt.request, one.signal);
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
      const failure = {
        why: `the API server did not answer (${error.message})`,
        cause: error,
        retryAfterMs: undefined,
      };
      if (within.signal.aborted) throw overReason(attempt, within, last ?? failure);
      return failure;
    }
    if (answer.status >= 200 && answer.status < 300 && typeof answer.body !== "string") {
      return { found: { t: "found", body: answer.body } };
    }
    const why = `the API server answered ${answer.status}: ${wordsOf(answer)}`;
    if (answer.status === 429 || answer.status >= 500)
      return { why, cause: undefined, retryAfterMs: answer.retryAfterMs };
    // A body that is no JSON is an answer of something in between.
    if (answer.status >= 200 && answer.status < 300) return { why, cause: undefined, retryAfterMs: undefined };
    return { found: refusalOf(attempt, answer, why) };
  }

  async #pauseOr(attempt: Attempt, waitMs: number, within: Deadline, failure: Failure): Promise<void> {
    try {
      await pause(this.#deps.clock, waitMs, within.signal);
    } catch {
      throw overReason(attempt, within, failure);
    }
  }
}

interface Failure {
  readonly why: string;
  readonly cause: unknown;
  readonly retryAfterMs: number | undefined;
}

function refusalOf(attempt: Attempt, answer: ApiAnswer, why: string): Found {
  if (attempt.name !== undefined && saysAbsent(answer, attempt.name)) return { t: "absent" };
  if (answer.status === 401 || answer.status === 403) {
    return { t: "refused", answer, error: forbidden(attempt, answer) };
  }
  const hint = answer.status === 404 ? " (is the kind installed in this cluster?)" : "";
  return { t: "refused", answer, error: unavailable(attempt, `${why}${hint}`) };
}

/** The deadline's end is CLUSTER_UNAVAILABLE; a caller's cancellation travels out as the caller's own reason. */
function overReason(attempt: Attempt, within: Deadline, last: Failure): unknown {
  if (!within.expired) return within.signal.reason;
  return unavailable(
    attempt,
    `the API server gave no usable answer within ${within.budgetMs} ms (last: ${last.why})`,
    last.cause,
  );
}
