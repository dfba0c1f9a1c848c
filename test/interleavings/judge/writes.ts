import type { KubeObject } from "@holdfast/embedded-cluster/testing";
import { type CallRecord, deleteVerbs, startVerbs, stopVerbs } from "../world/calls.ts";
import { annotationOf, hasEnded, isBindable, modeOf, storedEpochOf, writtenByOf } from "../world/facts.ts";
import type { Moment } from "../world/history.ts";
import type { SentWrite } from "../world/write-log.ts";
import type { Judged } from "./judged.ts";
import { said, sandboxChanges, type Violation } from "./violation.ts";

/** What was written on the cluster. */
export function* writes(world: Judged): Iterable<Violation> {
  yield* deletes(world);
  const landedMarks = new Set<string>();
  for (const { before, after } of sandboxChanges(world.history.all())) {
    const mark = writtenByOf(after.sandbox);
    if (!after.sandbox || mark === undefined || mark === writtenByOf(before.sandbox)) continue;
    const sent = world.writes.of(mark).filter(({ revision }) => revision <= after.revision);
    const [write] = sent;
    const isNew = before.sandbox?.metadata.uid !== after.sandbox.metadata.uid;
    // A copy that somebody restored bears our marks.
    if (!write || (isNew && (write.request.method !== "POST" || landedMarks.has(mark)))) continue;
    landedMarks.add(mark);
    yield* landed(before, sent);
    yield* suspends(world, before, after, sent);
    yield* stores(before, after, write.call);
  }
  yield* taken(world);
}

/** L4, L42: a DELETE is sent only for who asked for it by name, and of pods only for ones that have ended. */
function* deletes({ writes: log, history, revisionSlack }: Judged): Iterable<Violation> {
  for (const { call } of log.deletes("sandboxes")) {
    if (call === undefined || !deleteVerbs.includes(call.verb)) {
      yield { promise: "no DELETE that nobody asked for", what: `a Sandbox's DELETE was sent for ${said(call)}` };
    }
  }
  for (const { call, request, revision } of log.deletes("pods")) {
    const uid = (request.body as { readonly preconditions?: { readonly uid?: string } }).preconditions?.uid;
    const mayBe = call !== undefined && startVerbs.includes(call.verb) && uid !== undefined;
    const isOver = ({ pods }: Moment): boolean => pods.every((pod) => pod.metadata.uid !== uid || hasEnded(pod));
    if (mayBe && history.between(revision, revision + revisionSlack).some(isOver)) continue;
    const promise = "no pod is deleted but one that has ended, by uid, for an Open or Resume";
    yield { promise, what: `sent for ${said(call)}` };
  }
}

/** L1, L24, L33: whenever a write lands, it lands on what its call had read, and on nothing that anybody wrote since. */
function* landed({ sandbox }: Moment, sent: readonly SentWrite[]): Iterable<Violation> {
  if (!sandbox || sent.some(({ request }) => request.method === "POST")) return;
  const moved = sent.map(({ from }) => (from ? movedBetween(from.object, sandbox) : ["it had read nothing"]));
  if (moved.some((what) => what.length === 0)) return;
  const what = `${moved.at(-1)?.join(", ")}, for ${said(sent[0]?.call)}`;
  yield { promise: "a write lands only on what its call had read", what };
}

function movedBetween(before: KubeObject, now: KubeObject): readonly string[] {
  const after = new Map(contractOf(now));
  return contractOf(before).flatMap(([key, value]) => (after.get(key) === value ? [] : [key]));
}

function contractOf(sandbox: KubeObject): readonly (readonly [string, string | undefined])[] {
  return [
    ["uid", sandbox.metadata.uid],
    ["written-by", writtenByOf(sandbox)],
    ["stamp", annotationOf(sandbox, "sandbox.namzu.ai/operating-mode-changed-at")],
    ["epoch", annotationOf(sandbox, "sandbox.namzu.ai/holder-epoch")],
  ];
}

/** L4, L19: nobody is suspended that nobody asked for, but what a failed start itself woke, while nobody can use it. */
function* suspends(
  { history, writes: log }: Judged,
  before: Moment,
  after: Moment,
  sent: readonly SentWrite[],
): Iterable<Violation> {
  const write = sent.at(-1);
  if (!write?.suspends || modeOf(before.sandbox) !== "Running") return;
  const { call, from, revision } = write;
  if (call && stopVerbs.includes(call.verb)) return;
  const isFailedStart = call !== undefined && startVerbs.includes(call.verb) && call.answer?.t !== "ok";
  const isItsOwn = log.of(writtenByOf(before.sandbox))[0]?.call === call;
  if (!isFailedStart || call.leavesOnFailure || !isItsOwn) {
    yield { promise: "no suspend that nobody asked for", what: `at ${after.revision}, for ${said(call)}` };
    return;
  }
  // The pod was read after the Sandbox reading whose conditions the patch tests.
  if (from && history.between(from.askedAt, revision).every(({ pods }) => pods.some(isBindable))) {
    yield {
      promise: "a failed start suspends only what nobody can use",
      what: `at ${after.revision}, for ${said(call)}`,
    };
  }
}

/** L20, L21: the stored number never goes back by our doing, a lower one never writes, and each write stores its caller's. */
function* stores(before: Moment, after: Moment, call: CallRecord | undefined): Iterable<Violation> {
  const isNew = before.sandbox?.metadata.uid !== after.sandbox?.metadata.uid;
  const [was, is] = [isNew ? 0 : storedEpochOf(before.sandbox), storedEpochOf(after.sandbox)];
  const what = `${was} to ${is} for ${said(call)}`;
  if (is < was) yield { promise: "the stored epoch never goes back", what };
  if (!call) return;
  const { epoch } = call;
  if (call.ignoresFence) {
    if (is !== was) yield { promise: "ignore_fence never changes the epoch", what };
  } else if (call.verb === "take_over") {
    // One whose first write got no answer takes the next number again (L20).
    if (is > was + 1 || (epoch !== undefined && is > epoch))
      yield { promise: "a take-over stores the next number", what };
  } else if (epoch === undefined) {
    if (was > 0) yield { promise: "a fenced workspace is not changed without an epoch", what };
  } else if (was > epoch || is !== epoch) {
    yield { promise: "a write applies only at or above the stored epoch, and stores its own", what };
  }
}

/** L20. */
function* taken({ calls, history }: Judged): Iterable<Violation> {
  const holders = new Map<string, CallRecord>();
  for (const call of calls) {
    if (call.verb !== "take_over" || call.answer?.t !== "ok" || call.answer.epoch === undefined) continue;
    const key = `${history.at(call.toRevision ?? 0).sandbox?.metadata.uid} ${call.answer.epoch}`;
    const other = holders.get(key);
    if (other) yield { promise: "no two callers hold one epoch", what: `${said(other)} and ${said(call)}` };
    holders.set(key, call);
  }
}
