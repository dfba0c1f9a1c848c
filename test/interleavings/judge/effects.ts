import { type CallRecord, startVerbs } from "../world/calls.ts";
import type { Judged } from "./judged.ts";
import { said, type Violation } from "./violation.ts";

/** What calls did in guests. */
export function* effects(world: Judged): Iterable<Violation> {
  yield* belowTheHolder(world);
  yield* inAnotherPod(world);
  yield* programsEnded(world);
}

/** L22, G5a: once a holder was answered, nothing of a lower epoch has an effect in any guest of this workspace. */
function* belowTheHolder({ guests, calls, history }: Judged): Iterable<Violation> {
  const holders = calls.flatMap((call) => {
    if (!isAnsweredStart(call) || call.order === undefined) return [];
    return [
      { call, order: call.order, epoch: call.epoch ?? 0, uid: history.at(call.toRevision ?? 0).sandbox?.metadata.uid },
    ];
  });
  for (const effect of guests.effects) {
    const holder = holders.find(
      ({ order, epoch, uid }) => order < effect.order && uid === effect.owner && (effect.epoch ?? 0) < epoch,
    );
    if (!holder) continue;
    yield {
      promise: "a caller without the newest epoch has no effect in a guest",
      what: `${effect.verb} under ${effect.epoch ?? "none"} for ${said(effect.call)}, after ${said(holder.call)}`,
    };
  }
}

function isAnsweredStart({ verb, answer, epoch }: CallRecord): boolean {
  return startVerbs.includes(verb) && answer?.t === "ok" && epoch !== undefined;
}

/** L15: one pod of a workspace is used at a time, by all replicas, and it is the one that the controller made. */
function* inAnotherPod({ guests, sandboxName }: Judged): Iterable<Violation> {
  const pods = new Map<string | undefined, string[]>();
  for (const { pod, name, owner, verb, call } of guests.effects) {
    if (name !== sandboxName)
      yield { promise: "only its own pod is bound", what: `${verb} in ${name} for ${said(call)}` };
    const used = pods.get(owner) ?? [];
    if (used.includes(pod) && used.at(-1) !== pod) {
      yield { promise: "never two pods bound", what: `${verb} for ${said(call)} in a pod that another had followed` };
    }
    if (used.at(-1) !== pod) pods.set(owner, [...used, pod]);
  }
}

/** A take-over ends nobody's program. */
function* programsEnded({ guests }: Judged): Iterable<Violation> {
  for (const program of guests.programs) {
    if (program.endedBy === "its client") {
      yield { promise: "nobody's program ends by what another does", what: `that of ${said(program.call)}` };
    }
  }
}
