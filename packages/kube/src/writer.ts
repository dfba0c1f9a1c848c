import { type BackoffPolicy, backoffMs, type Clock, type Deadline, pause } from "@holdfast/async";
import type { HoldfastError } from "@holdfast/errors";
import type { WriteEnding } from "@holdfast/workspace";
import { type Attempt, describe } from "./attempt.ts";
import { at, elements } from "./objects/json.ts";
import { absent, forbidden, unavailable, writeRefused } from "./refusals.ts";
import { type ApiAnswer, reasonOf, saysAbsent, wordsOf } from "./transport/api-answer.ts";
import { NoAnswer } from "./transport/no-answer.ts";
import type { ApiTransport } from "./transport/transport.ts";

/** Waits before a write that was turned away unread is sent again, where the server names none. */
const turnedAwayBackoff: BackoffPolicy = { firstMs: 500, maxMs: 5_000 };

export interface WriterDeps {
  readonly transport: ApiTransport;
  readonly clock: Clock;
  /** How long one write may take before its outcome is unknown. */
  readonly requestTimeoutMs: number;
}

/**
 * Sends writes, each once, and says how they ended (L1). It never throws for what the server or the network did. Only a 429 is sent
 * again: the server turned it away before reading it.
 */
export class Writer {
  readonly #deps: WriterDeps;

  constructor(deps: WriterDeps) {
    this.#deps = deps;
  }

  /** `confirm` makes the value of an applied write from the body; what it throws makes the write unknown, not failed. */
  async write<Value>(
    attempt: Attempt,
    confirm: (body: unknown) => Value,
    within: Deadline,
  ): Promise<WriteEnding<Value>> {
    const answered = await this.#answer(attempt, within);
    return "ending" in answered ? answered.ending : endingOf(attempt, answered, confirm);
  }

  /** As `write`, with the ending that only a creation has. */
  async create<Value>(
    attempt: Attempt,
    confirm: (body: unknown) => Value,
    within: Deadline,
  ): Promise<WriteEnding<Value> | { readonly t: "exists" }> {
    const answered = await this.#answer(attempt, within);
    if ("ending" in answered) return answered.ending;
    if (answered.status !== 409) return endingOf(attempt, answered, confirm);
    if (reasonOf(answered) === "AlreadyExists") return { t: "exists" };
    // A quota that others are changing, for one.
    return other(unavailable(attempt, `the API server answered 409: ${wordsOf(answered)}`));
  }

  /** The server's answer, or how the write ended without a usable one. */
  async #answer(attempt: Attempt, within: Deadline): Promise<ApiAnswer | { readonly ending: WriteEnding<never> }> {
    for (let tries = 0; ; tries += 1) {
      const answer = await this.#send(attempt, within);
      if ("ending" in answer || answer.status !== 429) return answer;
      const waitMs = answer.retryAfterMs ?? backoffMs(turnedAwayBackoff, tries, Math.random());
      const turnedAway = unavailable(attempt, `the API server turned it away (429): ${wordsOf(answer)}`);
      if (waitMs >= within.remainingMs()) return { ending: other(turnedAway) };
      try {
        await pause(this.#deps.clock, waitMs, within.signal);
      } catch {
        return { ending: other(turnedAway) };
      }
    }
  }

  async #send(attempt: Attempt, within: Deadline): Promise<ApiAnswer | { readonly ending: WriteEnding<never> }> {
    using one = within.within(this.#deps.requestTimeoutMs);
    try {
      return await this.#deps.transport.send(attempt.request, one.signal);
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
      if (error.sent) return { ending: { t: "unknown", cause: error } };
      return { ending: other(unavailable(attempt, `the request was not sent (${error.message})`, error)) };
    }
  }
}

function endingOf<Value>(attempt: Attempt, answer: ApiAnswer, confirm: (body: unknown) => Value): WriteEnding<Value> {
  const { status } = answer;
  if (status >= 200 && status < 300) {
    try {
      return { t: "applied", value: confirm(answer.body) };
    } catch (cause) {
      return { t: "unknown", cause };
    }
  }
  // 500 too: an API server answers it also for what it then did, and a proxy for anything. 408: something in between gave up waiting.
  if (status < 400 || status >= 500 || status === 408) {
    return { t: "unknown", cause: new Error(`${describe(attempt)} was answered ${status}: ${wordsOf(answer)}`) };
  }
  if (status === 401 || status === 403) return other(forbidden(attempt, answer));
  if (attempt.name !== undefined && saysAbsent(answer, attempt.name)) {
    return { t: "refused", why: "absent", error: absent(attempt) };
  }
  const error = writeRefused(attempt, answer);
  return meansCondition(attempt, answer) ? { t: "refused", why: "condition", error } : other(error);
}

/** A 422 that names fields was judged after every test held; one that names none may be a test that failed. */
function meansCondition(attempt: Attempt, answer: ApiAnswer): boolean {
  if (attempt.verb === "create") return false; // It has no condition.
  if (answer.status === 409) return true;
  const namesFields = elements(at(answer.body, "details", "causes")).some((cause) => at(cause, "field") !== undefined);
  return answer.status === 422 && !namesFields;
}

function other(error: HoldfastError): { readonly t: "refused"; readonly why: "other"; readonly error: HoldfastError } {
  return { t: "refused", why: "other", error };
}
