import { type CallRecord, deleteVerbs, startVerbs, stopVerbs, type Verb } from "../world/calls.ts";
import { isBindable, isDying, isStopped, isUp, modeOf, storedEpochOf } from "../world/facts.ts";
import type { Moment } from "../world/history.ts";
import type { Judged } from "./judged.ts";
import { said, type Violation } from "./violation.ts";

/** Every answer was true at some moment of its call. */
export function* answers(world: Judged): Iterable<Violation> {
  for (const call of world.calls) {
    const { answer, toRevision, isAbandoned } = call;
    if (isAbandoned || answer === undefined || toRevision === undefined) continue;
    if (answer.t === "error" && answer.reason === "DEFECT") {
      const { stack, message } = answer.error;
      yield { promise: "every failure has a name", what: `${said(call)}: ${stack ?? message}` };
      continue;
    }
    const truth = new Truth(world, call);
    const untrue = answer.t === "ok" ? truth.ofSuccess(answer.state, answer.pod) : truth.ofRefusal(answer.reason);
    if (untrue === undefined) continue;
    const words = answer.t === "error" ? `${answer.reason}: ${answer.error.message}` : `ok ${answer.state ?? ""}`;
    yield { promise: "every answer was true at some moment of its call", what: `${said(call)}: ${untrue}; ${words}` };
  }
}

/** What held while a call ran. Each question is answered with why it cannot have been true, or undefined. */
class Truth {
  readonly #world: Judged;
  readonly #call: CallRecord;
  readonly #moments: readonly Moment[];

  constructor(world: Judged, call: CallRecord) {
    this.#world = world;
    this.#call = call;
    const { fromRevision, toRevision = fromRevision } = call;
    this.#moments = world.history.between(Math.min(fromRevision, ...this.#flight()), toRevision);
  }

  ofSuccess(state: string | undefined, pod: string | undefined): string | undefined {
    const { verb } = this.#call;
    if (startVerbs.includes(verb)) return this.#ofStart(state, pod);
    if (verb === "destroy" && this.#some(isAbsent)) return undefined;
    if (stopVerbs.includes(verb)) return this.#some(isStopped) ? undefined : "its pods were never all gone";
    if (deleteVerbs.includes(verb)) return this.#some(isAbsent) ? undefined : "the object was never gone";
    return verb === "read" ? this.#ofRead(state) : undefined;
  }

  ofRefusal(reason: string): string | undefined {
    const { epoch, verb } = this.#call;
    switch (reason) {
      case "HOLDER_EPOCH_SUPERSEDED": {
        // A take-over presents the number that it took.
        if (verb === "take_over")
          return this.#stored((one) => one > this.#lowestStored()) ? undefined : "nobody took over";
        return epoch !== undefined && this.#stored((one) => one > epoch) ? undefined : "no higher epoch was stored";
      }
      case "HOLDER_EPOCH_NOT_TAKEN":
        return epoch !== undefined && this.#stored((one) => one < epoch) ? undefined : "no lower epoch was stored";
      case "HOLDER_EPOCH_REQUIRED":
        return epoch === undefined && this.#stored((one) => one > 0) ? undefined : "it was not fenced, or had an epoch";
      case "WORKSPACE_NOT_FOUND":
        return this.#some(isAbsent) || this.#wasReplaced() ? undefined : "it stood all the time";
      case "WORKSPACE_REPLACED":
        return this.#wasEverReplaced() ? undefined : "one workspace stood all the time";
      case "WORKSPACE_SUSPENDED":
        return this.#some(({ sandbox }) => modeOf(sandbox) === "Suspended") || this.#stopIsUnderWay()
          ? undefined
          : "nobody was suspending it";
      case "WORKSPACE_DELETING":
        return this.#some(({ sandbox }) => !sandbox || isDying(sandbox)) || this.#isUnderWay(deleteVerbs)
          ? undefined
          : "nobody was deleting it";
      case "SUSPEND_OVERTAKEN":
        return this.#some(({ sandbox }) => modeOf(sandbox) === "Running") ? undefined : "it was never Running";
      default:
        return undefined;
    }
  }

  #ofStart(state: string | undefined, pod: string | undefined): string | undefined {
    const { epoch } = this.#call;
    if (state !== "running") return `its state is ${state}`;
    if (!this.#some(isUp)) return "no bindable pod of a Running workspace stood";
    if (epoch !== undefined && !this.#stored((one) => one === epoch)) return "its epoch was never stored";
    const isPod = ({ pods }: Moment): boolean => pods.some((one) => one.metadata.uid === pod && isBindable(one));
    if (pod !== undefined && !this.#some(isPod)) return "its pod was never to be bound";
    return undefined;
  }

  #ofRead(state: string | undefined): string | undefined {
    if (state === "running" && !this.#some(({ sandbox }) => modeOf(sandbox) === "Running"))
      return "it was never Running";
    if (state === "suspended" && !this.#some(isStopped)) return "it was never stopped";
    return undefined;
  }

  #some(holds: (moment: Moment) => boolean): boolean {
    return this.#moments.some(holds);
  }

  /** Of an object that stood: a copy that was restored may have a lower one. */
  #stored(holds: (epoch: number) => boolean): boolean {
    return this.#some(({ sandbox }) => sandbox !== undefined && holds(storedEpochOf(sandbox)));
  }

  #lowestStored(): number {
    return Math.min(...this.#moments.map(({ sandbox }) => storedEpochOf(sandbox)));
  }

  /** L3: a stop shares the flight that is under way, and what that has seen: when those that it may have joined began. */
  #flight(): readonly number[] {
    const { verb } = this.#call;
    const verbs = [stopVerbs, deleteVerbs].find((ones) => ones.includes(verb)) ?? [];
    return this.#overlapping(verbs).map((other) => other.fromRevision);
  }

  #wasReplaced(): boolean {
    return new Set(this.#moments.map(({ sandbox }) => sandbox?.metadata.uid)).size > 1;
  }

  #wasEverReplaced(): boolean {
    const { history } = this.#world;
    const moments = history.between(0, this.#call.toRevision ?? 0);
    // L16: or its disk.
    const uids = new Set(moments.flatMap(({ sandbox }) => sandbox?.metadata.uid ?? []));
    return uids.size > 1 || moments.slice(1).some(isAbsent) || this.#world.lostClaims > 0;
  }

  /** A suspend that may land, be taken back, or be waited for: also one of a failed start (L19), or with no known ending (L1). */
  #stopIsUnderWay(): boolean {
    const { writes } = this.#world.writes;
    const { replica, toRevision = 0 } = this.#call;
    const isUnknown = writes.some(
      (write) => write.replica === replica && write.suspends && write.revision <= toRevision && write.answered !== "ok",
    );
    return isUnknown || this.#isUnderWay(stopVerbs);
  }

  #isUnderWay(verbs: readonly Verb[]): boolean {
    return this.#overlapping(verbs).length > 0;
  }

  /** Calls of this process that ran beside this one. */
  #overlapping(verbs: readonly Verb[]): readonly CallRecord[] {
    const { replica, id, fromRevision, toRevision = fromRevision } = this.#call;
    return this.#world.calls.filter(
      (other) =>
        other.id !== id &&
        other.replica === replica &&
        verbs.includes(other.verb) &&
        other.fromRevision <= toRevision &&
        (other.toRevision === undefined || other.isAbandoned || other.toRevision >= fromRevision),
    );
  }
}

const isAbsent = ({ sandbox }: Moment): boolean => sandbox === undefined;
