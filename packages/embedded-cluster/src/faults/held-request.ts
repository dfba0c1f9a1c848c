import { type Fate, type Later, reasonOf, refusalOf } from "./fate.ts";
import type { FaultedRequest, Loss } from "./fault-rule.ts";
import type { HeldRequest, LateOutcome, LateRequest } from "./faults.ts";

/** A gate for one request: the plan's side decides by `fate`, the test's side by the ways on. */
export class Held implements HeldRequest {
  readonly #arrived = Promise.withResolvers<FaultedRequest>();
  readonly #decided = Promise.withResolvers<Fate>();
  #isDecided = false;

  get reached(): Promise<FaultedRequest> {
    return this.#arrived.promise;
  }

  /** For the plan: the request is here; resolves with what becomes of it. */
  fate(request: FaultedRequest): Promise<Fate> {
    this.#arrived.resolve(request);
    return this.#decided.promise;
  }

  pass(): void {
    this.#decide({ t: "continue" });
  }

  fail(code: number, reason = reasonOf(code), message = "a fault rule says so"): void {
    this.#decide({ t: "fail", error: refusalOf(code, reason, message) });
  }

  applyThenDrop(loss: Loss = "cut"): void {
    this.#decide({ t: "applyThenDrop", loss });
  }

  drop(loss: Loss = "cut"): void {
    this.#decide({ t: "dropUnapplied", loss });
  }

  loseReply(loss: Loss = "cut"): LateRequest {
    const late = new Late(this.#arrived.promise);
    this.#decide({ t: "applyLate", loss, later: late.later });
    return late;
  }

  /** For the plan, when it is cleared: goes on unless the test has decided. */
  letGo(): void {
    if (!this.#isDecided) this.pass();
  }

  #decide(fate: Fate): void {
    if (this.#isDecided) throw new Error("What becomes of the held request is decided already.");
    this.#isDecided = true;
    this.#decided.resolve(fate);
  }
}

/** A request that has no answer; it is carried out when the test says so. */
export class Late implements LateRequest {
  readonly reached: Promise<FaultedRequest>;
  readonly #due = Promise.withResolvers<boolean>();
  readonly #outcome = Promise.withResolvers<LateOutcome>();
  #decided: boolean | undefined;

  constructor(reached: Promise<FaultedRequest>) {
    this.reached = reached;
  }

  get later(): Later {
    return { due: this.#due.promise, landed: this.#outcome.resolve };
  }

  land(): Promise<LateOutcome> {
    this.#decide(true);
    return this.#outcome.promise;
  }

  lose(): void {
    this.#decide(false);
  }

  /** For the plan, when it is cleared: carried out, unless the test has decided. */
  letGo(): void {
    if (this.#decided === undefined) this.#decide(true);
  }

  /** For the plan: no request will come any more. */
  giveUp(): void {
    this.letGo();
    this.#outcome.resolve({ code: 0, message: "no request came before the rule was taken back" });
  }

  #decide(isCarriedOut: boolean): void {
    if (this.#decided !== undefined) throw new Error("What becomes of the late request is decided already.");
    this.#decided = isCarriedOut;
    this.#due.resolve(isCarriedOut);
  }
}
