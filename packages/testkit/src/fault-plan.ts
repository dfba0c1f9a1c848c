import type { Deadline } from "@holdfast/async";
import { HoldfastError } from "@holdfast/errors";
import { Gate } from "./gate.ts";

export type Verb =
  | "readTemplate"
  | "readSandbox"
  | "readPods"
  | "readClaims"
  | "readRemains"
  | "createSandbox"
  | "setMode"
  | "deleteSandbox"
  | "deletePod"
  | "listSandboxes"
  | "listTemplates";

/**
 * How a request goes wrong. `refuse`: answered no. `never-arrived` and `reply-lost`: no answer, with nothing done or all done.
 * `late`: no answer, and it arrives when the test says so. `unavailable`: a read that fails. `stall`: no answer before the deadline.
 */
export type Fault = "refuse" | "never-arrived" | "reply-lost" | "late" | "unavailable" | "forbidden" | "stall";

/** What tests have planned for the requests to come, and what came. */
export class FaultPlan {
  /** Every request, in the order they came. */
  readonly requests: Verb[] = [];
  readonly #faults = new Map<Verb, Fault[]>();
  readonly #gates = new Map<Verb, Gate[]>();

  /** The next requests of the verb go wrong like this, one after another. */
  fail(verb: Verb, ...faults: readonly Fault[]): void {
    this.#faults.set(verb, [...(this.#faults.get(verb) ?? []), ...faults]);
  }

  /** Nothing goes wrong any more. */
  forget(): void {
    this.#faults.clear();
  }

  /** The next request of the verb waits here before it is carried out. */
  hold(verb: Verb): Gate {
    const gate = new Gate();
    this.#gates.set(verb, [...(this.#gates.get(verb) ?? []), gate]);
    return gate;
  }

  count(verb: Verb): number {
    return this.requests.filter((request) => request === verb).length;
  }

  /** Requests that write. */
  get writes(): readonly Verb[] {
    const writes: readonly Verb[] = ["createSandbox", "setMode", "deleteSandbox", "deletePod"];
    return this.requests.filter((verb) => writes.includes(verb));
  }

  /** Takes note of a request and gives its fault. */
  async arrive(verb: Verb, within: Deadline): Promise<Fault | undefined> {
    this.requests.push(verb);
    const fault = this.#faults.get(verb)?.shift();
    const gate = this.#gates.get(verb)?.shift();
    if (gate) await gate.pass(within.signal);
    if (fault === "stall") await new Gate().pass(within.signal);
    return fault;
  }

  /** As a read does: an expired deadline is CLUSTER_UNAVAILABLE, a caller's cancellation is its own reason. */
  async arriveRead(verb: Verb, within: Deadline): Promise<void> {
    if (within.signal.aborted) throw overReason(within);
    let fault: Fault | undefined;
    try {
      fault = await this.arrive(verb, within);
    } catch {
      throw overReason(within);
    }
    if (fault === "unavailable") throw unavailable("the fake cluster is unavailable");
    if (fault === "forbidden") throw new HoldfastError("CLUSTER_FORBIDDEN", { message: `${verb} is forbidden` });
  }
}

function overReason(within: Deadline): unknown {
  return within.expired ? unavailable(`no answer within ${within.budgetMs} ms`) : within.signal.reason;
}

function unavailable(message: string): HoldfastError {
  return new HoldfastError("CLUSTER_UNAVAILABLE", { message });
}
