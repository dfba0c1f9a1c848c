import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  DiskService,
  type QuiesceRequest,
  type QuiesceResponseSchema,
  QuiesceScope,
  type StoppedProcessSchema,
} from "@holdfast/api/holdfast/guest/v1/disk_pb";
import {
  flushTimeoutDefaultMs,
  flushTimeoutMaxMs,
  quiescedNamedMax,
  quiesceGraceDefaultMs,
  quiesceGraceMaxMs,
  quiesceHoldMaxMs,
} from "@holdfast/contract";
import type { CallContext, Router } from "@holdfast/guest-link";
import { durationOf } from "../execution/duration.ts";
import { invalid, parseDuration } from "../execution/start-wish.ts";
import type { Fence } from "../fence/fence.ts";
import type { Flush } from "./flush.ts";
import type { Quiesce, QuiesceOutcome } from "./quiesce.ts";
import type { StoppedProcess } from "./stop-programs.ts";

export interface DiskNeeds {
  readonly quiesce: Quiesce;
  /** Undefined: the guest cannot flush. */
  readonly flush: Flush | undefined;
  readonly fence: Fence;
}

/** Serves the disk: bringing it to rest, and writing it out. */
export function routeDisk(router: Router, { quiesce, flush, fence }: DiskNeeds): void {
  const { quiesce: stop, releaseQuiesce, flush: sync } = DiskService.method;
  router
    .unary(stop, (request, context) => runQuiesce(quiesce, fence, request, context))
    .unary(releaseQuiesce, async ({ holdId }, { epoch }) => {
      fence.admit(epoch);
      return { released: quiesce.release(holdId) };
    });
  if (flush === undefined) return; // Not routed: the link answers GUEST_FEATURE_MISSING.
  router.unary(sync, async ({ timeout }) => {
    const timeoutMs = parseDuration("timeout", timeout) ?? flushTimeoutDefaultMs;
    if (timeoutMs > flushTimeoutMaxMs) throw invalid("timeout", `is longer than ${flushTimeoutMaxMs} ms`);
    return { took: durationOf(await flush.run(timeoutMs)) };
  });
}

async function runQuiesce(
  quiesce: Quiesce,
  fence: Fence,
  request: QuiesceRequest,
  { epoch, signal: caller }: CallContext,
): Promise<MessageInitShape<typeof QuiesceResponseSchema>> {
  const graceMs = parseDuration("grace", request.grace) ?? quiesceGraceDefaultMs;
  if (graceMs > quiesceGraceMaxMs) throw invalid("grace", `is longer than ${quiesceGraceMaxMs} ms`);
  const holdMs = parseDuration("hold", request.hold);
  if (holdMs === 0) throw invalid("hold", "must be longer than 0; leave it out for none");
  if (holdMs !== undefined && holdMs > quiesceHoldMaxMs) throw invalid("hold", `is longer than ${quiesceHoldMaxMs} ms`);
  // Withdrawn with its holder, and with its caller: nobody would learn what it did, or of its hold.
  const withdrawn = new AbortController();
  const signal = AbortSignal.any([withdrawn.signal, caller]);
  const forget = fence.onRaise(epoch, (why) => withdrawn.abort(why));
  try {
    const onHold = (release: () => void): (() => void) => fence.onRaise(epoch, release);
    const outcome = await fence.effect(epoch, () => quiesce.run({ graceMs, holdMs, onHold, signal }));
    if (caller.aborted && outcome.holdId !== undefined) quiesce.release(outcome.holdId);
    return responseOf(outcome);
  } finally {
    forget();
  }
}

function responseOf(outcome: QuiesceOutcome): MessageInitShape<typeof QuiesceResponseSchema> {
  return {
    scope: outcome.scope === "pid-namespace" ? QuiesceScope.PID_NAMESPACE : QuiesceScope.OWNED_SESSIONS,
    rounds: outcome.rounds,
    stopped: outcome.stopped.slice(0, quiescedNamedMax).map(onWire),
    stoppedCount: outcome.stopped.length,
    notReached: outcome.notReached.slice(0, quiescedNamedMax).map(onWire),
    holdId: outcome.holdId ?? "",
  };
}

function onWire({ pid, name, lastSignal }: StoppedProcess): MessageInitShape<typeof StoppedProcessSchema> {
  return { pid: BigInt(pid), name, lastSignal };
}
