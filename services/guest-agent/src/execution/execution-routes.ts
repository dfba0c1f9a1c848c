import { ExecutionService } from "@holdfast/api/holdfast/guest/v1/execution_pb";
import { cancelGraceDefaultMs, cancelGraceMaxMs } from "@holdfast/contract";
import { type AgentStream, AnsweredError, type Router } from "@holdfast/guest-link";
import type { Execution } from "./execution.ts";
import { beyondEnd, type ExecutionTable } from "./execution-table.ts";
import { OutputFollower } from "./output-follower.ts";
import { invalid, parseDuration, parseExecutionId, parseStart } from "./start-wish.ts";

/** Serves executions. */
export function routeExecutions(router: Router, table: ExecutionTable, bootId: string): void {
  router
    .stream(ExecutionService.method.startExecution, async (request, stream) => {
      expectBoot(request.expectedBootId, bootId);
      const wish = parseStart(request);
      const fromOffset = parseOffset(request.fromOffset);
      const { execution, joined } = await table.start(wish, fromOffset);
      await follow(execution, stream, { ...request, asClient: true }, joined, bootId);
    })
    .stream(ExecutionService.method.followExecution, async (request, stream) => {
      expectBoot(request.expectedBootId, bootId);
      const execution = table.require(parseExecutionId(request.executionId));
      await follow(execution, stream, request, true, bootId);
    })
    .unary(ExecutionService.method.cancelExecution, async (request) => {
      expectBoot(request.expectedBootId, bootId);
      const graceMs = parseDuration("grace", request.grace) ?? cancelGraceDefaultMs;
      if (graceMs > cancelGraceMaxMs) throw invalid("grace", `is longer than ${cancelGraceMaxMs} ms`);
      const execution = table.require(parseExecutionId(request.executionId));
      const alreadyEnded = execution.state.t === "ended";
      await execution.end("cancelled", graceMs);
      return { alreadyEnded };
    });
}

interface FollowWish {
  readonly fromOffset: bigint;
  readonly maxOutputBytes?: bigint | undefined;
  readonly asClient: boolean;
}

async function follow(
  execution: Execution,
  stream: AgentStream,
  wish: FollowWish,
  joined: boolean,
  bootId: string,
): Promise<void> {
  const fromOffset = parseOffset(wish.fromOffset);
  const { log } = execution;
  await execution.lookAgain();
  if (fromOffset > log.end) throw beyondEnd(execution.wish.id, fromOffset, log.end);
  const maxOutputBytes = wish.maxOutputBytes === undefined ? undefined : Number(wish.maxOutputBytes);
  await new OutputFollower(execution, stream, { fromOffset, maxOutputBytes, asOwner: wish.asClient }).run(
    joined,
    bootId,
  );
}

function parseOffset(offset: bigint): number {
  if (offset <= BigInt(Number.MAX_SAFE_INTEGER)) return Number(offset);
  throw invalid("from_offset", `is beyond ${Number.MAX_SAFE_INTEGER}`);
}

function expectBoot(expected: string, bootId: string): void {
  if (expected === "" || expected === bootId) return;
  throw new AnsweredError(
    "GUEST_RESTARTED",
    "Nothing was done: the guest's agent is another process than the one this call expected, and knows nothing of its commands.",
    { expected_boot_id: expected, boot_id: bootId },
  );
}
