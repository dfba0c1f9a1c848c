import { ExecutionService } from "@holdfast/api/holdfast/guest/v1/execution_pb";
import {
  cancelGraceDefaultMs,
  cancelGraceMaxMs,
  executionListArgsMaxBytes,
  stdinWriteMaxBytes,
} from "@holdfast/contract";
import { type AgentStream, AnsweredError, type Router } from "@holdfast/guest-link";
import { expectBoot } from "../expect-boot.ts";
import type { Fence } from "../fence/fence.ts";
import type { Execution } from "./execution.ts";
import { beyondEnd, type ExecutionTable } from "./execution-table.ts";
import { executionOf } from "./execution-view.ts";
import { OutputFollower } from "./output-follower.ts";
import { parseSignal } from "./signals.ts";
import { invalid, parseDuration, parseExecutionId, parseStart } from "./start-wish.ts";

/** Serves executions. */
export function routeExecutions(router: Router, table: ExecutionTable, fence: Fence, bootId: string): void {
  router
    .stream(ExecutionService.method.startExecution, (request, stream) => {
      expectBoot(request.expectedBootId, bootId);
      const fromOffset = parseOffset(request.fromOffset);
      const { maxOutputBytes } = request;
      const { epoch } = stream.context;
      const admit = fence.admitting(epoch);
      const start = () => table.start(parseStart(request), fromOffset, admit);
      // What follows holds no request: its input may be megabytes, and the command may run for a month.
      return followStarted(
        fence.effect(epoch, start),
        stream,
        { fromOffset: request.fromOffset, maxOutputBytes },
        { bootId, fence },
      );
    })
    .stream(ExecutionService.method.followExecution, async (request, stream) => {
      expectBoot(request.expectedBootId, bootId);
      const execution = table.require(parseExecutionId(request.executionId));
      await execution.lookAgain();
      if (request.asClient) fence.admit(stream.context.epoch); // In the same step as it takes the client's place.
      await follow(execution, stream, request, { joined: true, bootId, fence });
    })
    .unary(ExecutionService.method.cancelExecution, async (request, { epoch }) => {
      expectBoot(request.expectedBootId, bootId);
      const graceMs = parseDuration("grace", request.grace) ?? cancelGraceDefaultMs;
      if (graceMs > cancelGraceMaxMs) throw invalid("grace", `is longer than ${cancelGraceMaxMs} ms`);
      const execution = table.require(parseExecutionId(request.executionId));
      return { alreadyEnded: !(await execution.end("cancelled", graceMs, () => fence.admit(epoch))) };
    })
    .unary(ExecutionService.method.signalExecution, async (request, { epoch }) => {
      expectBoot(request.expectedBootId, bootId);
      const signal = parseSignal(request.signal);
      const execution = table.require(parseExecutionId(request.executionId));
      return { alreadyEnded: !(await execution.signal(signal, () => fence.admit(epoch))) };
    })
    .unary(ExecutionService.method.writeStdin, async (request, { epoch, signal }) => {
      const { data, end } = request;
      if (data.length > stdinWriteMaxBytes) throw tooLong(data.length);
      const offset = parseOffset(request.offset);
      const execution = table.require(parseExecutionId(request.executionId));
      // Streamed input of a lower epoch ends with a raise: what waits for room in the pipe is taken back.
      const raised = new AbortController();
      const forget = fence.onRaise(epoch, (why) => raised.abort(why));
      try {
        const { nextOffset, closed } = await execution.write(
          { offset, data, end },
          { effect: (change) => fence.effect(epoch, change), signal: AbortSignal.any([signal, raised.signal]) },
        );
        return { nextOffset: BigInt(nextOffset), closed };
      } finally {
        forget();
      }
    })
    .unary(ExecutionService.method.getExecution, async (request) => {
      const execution = table.require(parseExecutionId(request.executionId));
      await execution.lookAgain();
      return { execution: executionOf(execution), bootId };
    })
    .unary(ExecutionService.method.listExecutions, async () => ({
      executions: table.all.map((execution) => executionOf(execution, executionListArgsMaxBytes)),
      bootId,
    }));
}

function tooLong(bytes: number): AnsweredError {
  return new AnsweredError(
    "INVALID_REQUEST",
    `Nothing was written: data has ${bytes} bytes, and one write carries at most ${stdinWriteMaxBytes} (stdinWriteMaxBytes).`,
    { field: "data", bytes: String(bytes), limit: String(stdinWriteMaxBytes), setting: "stdinWriteMaxBytes" },
  );
}

/** Follows what a start came to. */
async function followStarted(
  starting: ReturnType<ExecutionTable["start"]>,
  stream: AgentStream,
  wish: Omit<FollowWish, "asClient">,
  needs: Omit<FollowNeeds, "joined">,
): Promise<void> {
  const { execution, joined } = await starting;
  await execution.lookAgain();
  // A start that a raise overtook may only look at what others started; what it started itself is its own.
  const asClient = !joined || mayAct(needs.fence, stream.context.epoch);
  await follow(execution, stream, { ...wish, asClient }, { ...needs, joined });
}

interface FollowWish {
  readonly fromOffset: bigint;
  readonly maxOutputBytes?: bigint | undefined;
  readonly asClient: boolean;
}

interface FollowNeeds {
  readonly joined: boolean;
  readonly bootId: string;
  readonly fence: Fence;
}

/** Follows it; the first step, in which it may become the command's client, is synchronous. */
async function follow(
  execution: Execution,
  stream: AgentStream,
  wish: FollowWish,
  { joined, bootId, fence }: FollowNeeds,
): Promise<void> {
  const fromOffset = parseOffset(wish.fromOffset);
  const { log } = execution;
  if (fromOffset > log.end) throw beyondEnd(execution.wish.id, fromOffset, log.end);
  const maxOutputBytes = wish.maxOutputBytes === undefined ? undefined : Number(wish.maxOutputBytes);
  const mayEnd = (): boolean => mayAct(fence, stream.context.epoch);
  const follower = new OutputFollower(execution, stream, {
    fromOffset,
    maxOutputBytes,
    asOwner: wish.asClient,
    mayEnd,
  });
  await follower.run(joined, bootId);
}

function mayAct(fence: Fence, epoch: bigint | undefined): boolean {
  try {
    fence.admit(epoch);
    return true;
  } catch {
    return false; // Superseded: whoever asks does less then, and tells nobody.
  }
}

function parseOffset(offset: bigint): number {
  if (offset <= BigInt(Number.MAX_SAFE_INTEGER)) return Number(offset);
  throw invalid("from_offset", `is beyond ${Number.MAX_SAFE_INTEGER}`);
}
