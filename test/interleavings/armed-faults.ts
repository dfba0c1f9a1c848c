import type { HeldRequest, LateRequest } from "@holdfast/embedded-cluster/testing";
import type { ApiFault, FaultedRequestName } from "./steps.ts";
import type { Tally } from "./tally.ts";
import type { CallRecord } from "./world/calls.ts";
import type { Deed } from "./world/meanwhile.ts";
import type { World } from "./world/world.ts";

interface Armed {
  readonly id: string;
  readonly fault: ApiFault;
  readonly isMet: (met: ReadonlyMap<string, number>) => boolean;
}

interface Place {
  readonly name: FaultedRequestName;
  readonly replica: number;
  readonly match: {
    readonly verb: "create" | "patch" | "delete" | "get" | "list";
    readonly resource: string;
    readonly by: string;
  };
}

interface Hold {
  readonly request: HeldRequest;
  state: "waits" | "holds" | "over";
}

const methods = { create: "POST", patch: "PATCH", delete: "DELETE", get: "GET", list: "GET" } as const;
const isOfCollection = (verb: Place["match"]["verb"]): boolean => verb === "list" || verb === "create";

/** What lies in wait for the requests of the replicas. */
export class ArmedFaults {
  readonly #world: World;
  readonly #tally: Tally;
  #armed: Armed[] = [];
  readonly #rules: { remove(): void }[] = [];
  readonly #held: Hold[] = [];
  /** Requests whose callers heard nothing, and that land at the very end. */
  readonly #last: LateRequest[] = [];

  constructor(world: World, tally: Tally) {
    this.#world = world;
    this.#tally = tally;
    world.onAnswered = (call) => this.noteMet(call);
  }

  /** The next such request of each replica meets it. */
  arm(name: FaultedRequestName, fault: ApiFault, ms: number): void {
    const [verb, what] = name.split(" ") as [Place["match"]["verb"], string];
    const resource = what.startsWith("pod") ? "pods" : "sandboxes";
    const meant = meantFor(verb, fault);
    for (const replica of [0, 1])
      this.#arm({ name, replica, match: { verb, resource, by: `replica-${replica}` } }, meant, ms);
  }

  /** Just before such a request of each replica is carried out, this is run. */
  meanwhile(name: FaultedRequestName, what: Pick<Deed, "isDue" | "passes" | "run">): void {
    const [verb, kind] = name.split(" ") as [Place["match"]["verb"], string];
    const plural = kind.startsWith("pod") ? "pods" : "sandboxes";
    for (const replica of [0, 1])
      this.#world.meanwhile.add({ replica, method: methods[verb], plural, isList: isOfCollection(verb), ...what });
  }

  /** All is well from here on; but what is to land at the very end is still on its way. */
  lift(): void {
    for (const rule of this.#rules.splice(0)) rule.remove();
    const { faults } = this.#world.cluster;
    // Of those that are to land last, the ones that have met nothing.
    for (const { id, met } of faults.list()) if (met === 0) faults.remove(id);
    for (const held of this.#held) this.#pass(held);
    this.#world.slowAnswers.clear();
    this.#world.meanwhile.clear();
  }

  /** What is still on its way is carried out: every other one, or all. */
  async landLast(which: "some" | "all"): Promise<void> {
    const waiting = this.#last.splice(0);
    const now = waiting.filter((_, at) => which === "all" || at % 2 === 0);
    this.#last.push(...waiting.filter((late) => !now.includes(late)));
    for (const late of now) {
      const { code } = await late.land();
      this.#tally.count("landed at the very end", code < 400 ? "applied" : "refused");
    }
  }

  /** Counts what was met since, by a request of this call if of any. */
  noteMet(call: CallRecord | undefined): void {
    if (this.#armed.length === 0) return;
    const met = new Map(this.#world.cluster.faults.list().map((rule) => [rule.id, rule.met]));
    this.#armed = this.#armed.filter(({ id, fault, isMet }) => {
      if (!isMet(met)) return true;
      this.#tally.count("fault", id);
      call?.met.add(fault);
      return false;
    });
  }

  #arm({ name, replica, match }: Place, fault: ApiFault, ms: number): void {
    const { faults } = this.#world.cluster;
    const id = `${name} ${fault}`;
    switch (fault) {
      case "held": {
        const held: Hold = { request: faults.hold(match), state: "waits" };
        this.#held.push(held);
        void held.request.reached.then(() => {
          if (held.state !== "waits") return;
          held.state = "holds";
          this.#world.clock.schedule(ms, () => this.#pass(held));
        });
        this.#armed.push({ id, fault, isMet: () => held.state !== "waits" });
        return;
      }
      case "late_last": {
        const late = faults.late(match, { loss: "timeout" });
        let reached = false;
        void late.reached.then(() => {
          reached = true;
          this.#last.push(late);
        });
        this.#armed.push({ id, fault, isMet: () => reached });
        return;
      }
      case "slow_answer": {
        let reached = false;
        this.#world.slowAnswers.add({
          replica,
          method: methods[match.verb],
          plural: match.resource,
          isList: isOfCollection(match.verb),
          ms,
          met: () => {
            reached = true;
          },
        });
        this.#armed.push({ id, fault, isMet: () => reached });
        return;
      }
      default: {
        const rule = faults.add({ match, action: actionOf(fault, ms), count: 1 });
        this.#rules.push(rule);
        this.#armed.push({ id, fault, isMet: (met) => (met.get(rule.id) ?? 0) > 0 });
      }
    }
  }

  #pass(held: Hold): void {
    if (held.state === "over") return;
    held.state = "over";
    held.request.pass();
  }
}

/** A read has no effect that could come late. */
function meantFor(verb: string, fault: ApiFault): ApiFault {
  const isRead = verb === "get" || verb === "list";
  return isRead && (fault === "late" || fault === "late_last" || fault === "lost_after") ? "lost_before" : fault;
}

function actionOf(fault: Exclude<ApiFault, "held" | "late_last" | "slow_answer">, ms: number) {
  switch (fault) {
    case "refuse_409":
      return { t: "fail", code: 409, reason: "Conflict" } as const;
    case "refuse_422":
      return { t: "fail", code: 422, reason: "Invalid" } as const;
    case "busy_429":
      return { t: "fail", code: 429, reason: "TooManyRequests", retryAfterSeconds: 1 } as const;
    case "error_500":
      return { t: "fail", code: 500, reason: "InternalError" } as const;
    case "lost_before":
      return { t: "dropUnapplied", loss: "cut" } as const;
    case "lost_after":
      return { t: "applyThenDrop", loss: "cut" } as const;
    case "late":
      return { t: "applyLate", ms, loss: "timeout" } as const;
  }
}
