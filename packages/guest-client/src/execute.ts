import { ExecutionService } from "@holdfast/api/holdfast/guest/v1/execution_pb";
import type { ExecutionWish } from "@holdfast/workspace";
import type { Followed } from "./follow-command.ts";
import { startOf } from "./start-request.ts";

const { startExecution, followExecution } = ExecutionService.method;

/** A command that is started, or joined, as its client. Until it is known to have started, the start is repeated: one id never runs twice. */
export function executed(wish: ExecutionWish): Followed {
  const { executionId, maxOutputBytes, expectedBootId, onDisconnect } = wish;
  return {
    executionId,
    fromOffset: 0,
    maxOutputBytes,
    expectedBootId,
    endsWithClient: onDisconnect === "cancel",
    open: (link, delivery, events, options) => {
      // An older agent would start it with no input at all.
      const needs = wish.streamedStdin ? ({ needs: "execution-control" } as const) : {};
      return link.open(startExecution, { ...delivery, ...startOf(wish) }, events, { ...options, ...needs });
    },
    reopen: (link, delivery, events, options) =>
      link.open(followExecution, { ...delivery, asClient: true }, events, options),
    observe,
  };
}

/** Follows without being its client: takes nobody's place, and its end means nothing. */
export const observe: Followed["observe"] = (link, delivery, events, options) =>
  link.open(followExecution, delivery, events, options);
