import { type CallRecord, deleteVerbs, startVerbs, stopVerbs, type Verb } from "./world/calls.ts";
import { hasEnded, isBindable, isDying, isStopped, isUp, modeOf, storedEpochOf, writtenByOf } from "./world/facts.ts";
import type { Moment } from "./world/history.ts";
import type { World } from "./world/world.ts";

/** What is wrong with a sequence: the promise that it broke, and how. */
export interface Violation {
  readonly promise: string;
  readonly what: string;
}

/** Judges all that happened in a world by the cluster's own log: who wrote what, for whom, and whether each answer was true. */
export function judge(world: World): readonly Violation[] {
  return [
    ...deletes(world),
    ...modeChanges(world),
    ...epochs(world),
    ...effects(world),
    ...programs(world),
    ...world.calls.flatMap((call) => [...answer(world, call)]),
  ];
}

const said = (call: CallRecord | undefined): string =>
  call === undefined
    ? "no call"
    : `call ${call.id} (${call.verb} by caller ${call.caller} on replica ${call.replica}, epoch ${call.epoch ?? "none"}, ${call.answer?.t === "error" ? call.answer.reason : (call.answer?.t ?? "unanswered")})`;

/** L4, L42: a DELETE is sent only for who asked for it by name, and of pods only for ones that have ended. */
function* deletes({ writes, history }: World): Iterable<Violation> {
  for (const { call } of writes.deletes("sandboxes")) {
    if (call === undefined || !deleteVerbs.includes(call.verb)) {
      yield { promise: "no DELETE that nobody asked for", what: `a Sandbox's DELETE was sent for ${said(call)}` };
    }
  }
  for (const { call, request, revision } of writes.deletes("pods")) {
    const uid = (request.body as { readonly preconditions?: { readonly uid?: string } }).preconditions?.uid;
    const pod = history.at(revision).pods.find(({ metadata }) => metadata.uid === uid);
    const mayBe = call !== undefined && startVerbs.includes(call.verb) && uid !== undefined;
    if (!mayBe || (pod && !hasEnded(pod))) {
      yield {
        promise: "no pod is deleted but one that has ended, by uid, for an Open or Resume",
        what: `sent for ${said(call)}`,
      };
    }
  }
}

/** L4, L19: nobody is suspended that nobody asked for, but what a failed start itself woke. */
function* modeChanges({ history, writes }: World): Iterable<Violation> {
  for (const { before, after } of sandboxChanges(history.all())) {
    if (modeOf(before.sandbox) !== "Running" || modeOf(after.sandbox) !== "Suspended") continue;
    if (before.sandbox?.metadata.uid !== after.sandbox?.metadata.uid) continue;
    const mark = writtenByOf(after.sandbox);
    if (mark === writtenByOf(before.sandbox)) continue; // Somebody else's.
    const { call, writtenBy } = writes.of(mark) ?? {};
    if (call && stopVerbs.includes(call.verb)) continue;
    const isCleanup =
      call !== undefined &&
      startVerbs.includes(call.verb) &&
      !call.leavesOnFailure &&
      !(call.answer?.t === "ok") &&
      writes.of(writtenByOf(before.sandbox))?.call === call &&
      writtenBy !== undefined;
    if (!isCleanup) {
      yield { promise: "no suspend that nobody asked for", what: `at ${after.revision}, for ${said(call)}` };
      continue;
    }
    const sent = writes.of(mark);
    const read = sent ? history.at(sent.revision) : undefined;
    if (read?.pods.some(isBindable) && before.pods.some(isBindable) && call?.sawBindable) {
      yield {
        promise: "a failed start suspends only what nobody can use (L19)",
        what: `at ${after.revision}, for ${said(call)}`,
      };
    }
  }
}

/** L20, L21: the stored number never goes back by our doing, a lower one never writes, and two take-overs never get one number. */
function* epochs({ history, writes, calls }: World): Iterable<Violation> {
  for (const { before, after } of sandboxChanges(history.all())) {
    const mark = writtenByOf(after.sandbox);
    if (!after.sandbox || mark === undefined || mark === writtenByOf(before.sandbox)) continue;
    const write = writes.of(mark);
    const isNew = before.sandbox?.metadata.uid !== after.sandbox.metadata.uid;
    const [was, is] = [isNew ? 0 : storedEpochOf(before.sandbox), storedEpochOf(after.sandbox)];
    const { call } = write ?? {};
    if (is < was) yield { promise: "the stored epoch never goes back", what: `${was} to ${is} for ${said(call)}` };
    if (!call) continue;
    const isCleanupOf = call.epoch;
    if (call.ignoresFence) {
      if (is !== was)
        yield { promise: "ignore_fence never changes the epoch", what: `${was} to ${is} for ${said(call)}` };
    } else if (call.verb === "take_over") {
      // One whose first write got no answer takes the next number again (L20).
      if (is > was + 1 || (call.epoch !== undefined && is > call.epoch))
        yield { promise: "a take-over stores the next number", what: `${was} to ${is} for ${said(call)}` };
    } else if (isCleanupOf === undefined) {
      if (was > 0)
        yield { promise: "a fenced workspace is not changed without an epoch", what: `at ${was} for ${said(call)}` };
    } else if (was > isCleanupOf || is !== isCleanupOf) {
      yield {
        promise: "a write applies only at or above the stored epoch, and stores its own",
        what: `${was} to ${is} for ${said(call)}`,
      };
    }
  }
  const taken = new Map<string, CallRecord>();
  for (const call of calls) {
    if (call.verb !== "take_over" || call.answer?.t !== "ok" || call.answer.epoch === undefined) continue;
    const uid = history.at(call.toRevision ?? 0).sandbox?.metadata.uid;
    const key = `${uid} ${call.answer.epoch}`;
    const other = taken.get(key);
    if (other)
      yield {
        promise: "no two callers hold one epoch",
        what: `${said(other)} and ${said(call)} got ${call.answer.epoch}`,
      };
    taken.set(key, call);
  }
}

/** L22, G5a: once a take-over was answered, nothing of a lower epoch has an effect in any guest. */
function* effects({ guests, calls, history }: World): Iterable<Violation> {
  for (const effect of guests.effects) {
    for (const call of calls) {
      const { answer, toRevision } = call;
      const isHolder = startVerbs.includes(call.verb) && answer?.t === "ok" && call.epoch !== undefined;
      if (!isHolder || toRevision === undefined || toRevision >= effect.revision) continue;
      const bound = history.at(toRevision).pods.some(({ metadata }) => metadata.uid === effect.pod);
      if (!bound || (effect.epoch ?? 0) >= (call.epoch ?? 0)) continue;
      yield {
        promise: "a caller without the newest epoch has no effect in a guest",
        what: `${effect.verb} under ${effect.epoch ?? "none"} for ${said(effect.call)}, after ${said(call)}`,
      };
    }
  }
}

/** A take-over ends nobody's program. */
function* programs({ guests }: World): Iterable<Violation> {
  for (const program of guests.programs) {
    if (program.endedBy === "its client") {
      yield { promise: "nobody's program ends by what another does", what: `that of ${said(program.call)}` };
    }
  }
}

function* answer({ history, calls }: World, call: CallRecord): Iterable<Violation> {
  if (call.isAbandoned || call.answer === undefined || call.toRevision === undefined) return;
  const told = call.answer;
  if (told.t === "error" && told.reason === "DEFECT") {
    yield { promise: "every failure has a name", what: `${said(call)}: ${told.error.stack ?? told.error.message}` };
    return;
  }
  const moments = history.between(call.fromRevision, call.toRevision);
  const some = (holds: (moment: Moment) => boolean): boolean => moments.some(holds);
  const truth =
    told.t === "ok" ? okIsTrue(call, told.state, some) : errorIsTrue(call, told.reason, some, history.all(), calls);
  if (truth !== undefined) {
    const words = told.t === "error" ? `${told.reason}: ${told.error.message}` : `ok ${told.state ?? ""}`;
    yield { promise: "every answer was true at some moment of its call", what: `${said(call)}: ${words}; ${truth}` };
  }
}

type Some = (holds: (moment: Moment) => boolean) => boolean;

/** Why an answer cannot have been true; undefined: it can. */
function okIsTrue(call: CallRecord, state: string | undefined, some: Some): string | undefined {
  const { verb } = call;
  if (startVerbs.includes(verb)) {
    if (state !== "running") return `its state is ${state}`;
    if (!some(isUp)) return "no bindable pod of a Running workspace stood";
    if (call.epoch !== undefined && !some(({ sandbox }) => storedEpochOf(sandbox) === call.epoch))
      return "its epoch was never stored";
    return undefined;
  }
  if (stopVerbs.includes(verb)) {
    if (verb === "destroy" && some(({ sandbox }) => sandbox === undefined)) return undefined;
    return some(isStopped) ? undefined : "its pods were never all gone while it was asked to stop";
  }
  if (deleteVerbs.includes(verb)) {
    return some(({ sandbox }) => sandbox === undefined) ? undefined : "the object was never gone";
  }
  if (verb !== "read") return undefined;
  if (state === "running" && !some(isUp) && !some(({ sandbox }) => modeOf(sandbox) === "Running"))
    return "it was never Running";
  if (state === "suspended" && !some(isStopped)) return "it was never stopped";
  if (state === "deleting" && !some(({ sandbox }) => sandbox === undefined || isDying(sandbox))) {
    // A delete of its own may be on its way.
    return undefined;
  }
  return undefined;
}

function errorIsTrue(
  call: CallRecord,
  reason: string,
  some: Some,
  all: readonly Moment[],
  calls: readonly CallRecord[],
): string | undefined {
  const { epoch } = call;
  // A stop that was asked for before this call ended may have ended it, or be on its way still.
  const asked = (verbs: readonly Verb[]): boolean =>
    calls.some((other) => verbs.includes(other.verb) && other.fromRevision <= (call.toRevision ?? 0));
  const stored = (holds: (stored: number) => boolean): boolean =>
    some(({ sandbox }) => sandbox !== undefined && holds(storedEpochOf(sandbox)));
  switch (reason) {
    case "HOLDER_EPOCH_SUPERSEDED":
      // A take-over that failed has told its number to nobody: it was 1 or more.
      if (call.verb === "take_over") return stored((one) => one > 1) ? undefined : "nobody took over after it";
      return epoch !== undefined && stored((one) => one > epoch) ? undefined : "no higher epoch was stored";
    case "HOLDER_EPOCH_NOT_TAKEN":
      return epoch !== undefined && stored((one) => one < epoch) ? undefined : "no lower epoch was stored";
    case "HOLDER_EPOCH_REQUIRED":
      return epoch === undefined && stored((one) => one > 0)
        ? undefined
        : "it was not fenced, or the call had an epoch";
    case "WORKSPACE_NOT_FOUND":
      return some(({ sandbox }) => sandbox === undefined) || uidsIn(all) > 1 ? undefined : "it stood all the time";
    case "WORKSPACE_SUSPENDED":
      return some(({ sandbox }) => modeOf(sandbox) === "Suspended") || asked(stopVerbs)
        ? undefined
        : "nobody suspended it";
    case "WORKSPACE_DELETING":
      return some(({ sandbox }) => sandbox === undefined || isDying(sandbox)) || asked(deleteVerbs)
        ? undefined
        : "nobody deleted it";
    case "SUSPEND_OVERTAKEN":
      return some(({ sandbox }) => modeOf(sandbox) === "Running") ? undefined : "it was never Running";
    default:
      return undefined;
  }
}

function uidsIn(moments: readonly Moment[]): number {
  return new Set(moments.flatMap(({ sandbox }) => sandbox?.metadata.uid ?? [])).size;
}

function* sandboxChanges(moments: readonly Moment[]): Iterable<{ readonly before: Moment; readonly after: Moment }> {
  for (const [index, after] of moments.entries()) {
    const before = moments[index - 1];
    if (before && before.sandbox !== after.sandbox) yield { before, after };
  }
}
