import { type Execution, ExecutionService } from "@holdfast/api/holdfast/guest/v1/execution_pb";
import type { Clock, Deadline } from "@holdfast/async";
import { bootIdOf, type ExecutionId, isExecutionId } from "@holdfast/contract";
import { type GuestLink, LinkProtocolError } from "@holdfast/guest-link";
import type {
  AttachWish,
  CancelOrder,
  ExecutionEvent,
  GuestExecution,
  GuestExecutions,
  SignalOrder,
  StdinInput,
  StdinTaken,
} from "@holdfast/workspace";
import { observe } from "./execute.ts";
import { exitOf } from "./execution-events.ts";
import { type Followed, FollowedCommand } from "./follow-command.ts";
import { guestErrorOf, translated } from "./guest-errors.ts";
import { durationOf } from "./start-request.ts";

const { getExecution, listExecutions, signalExecution, writeStdin, cancelExecution } = ExecutionService.method;

/** The commands of one guest, over the framed link. */
export class LinkedExecutions implements GuestExecutions {
  readonly #link: GuestLink;
  readonly #clock: Clock;
  readonly #count: { executions: number };
  readonly #unreached: () => void;

  /** `count`: of the executions that are followed; shared by the views of one guest. `unreached`: see `GuestDialler.guest`. */
  constructor(link: GuestLink, clock: Clock, count: { executions: number }, unreached: () => void) {
    this.#link = link;
    this.#clock = clock;
    this.#count = count;
    this.#unreached = unreached;
  }

  async *attach(wish: AttachWish, signal: AbortSignal): AsyncGenerator<ExecutionEvent, void, undefined> {
    this.#count.executions += 1;
    try {
      yield* new FollowedCommand(this.#link, this.#clock, observed(wish), signal, this.#unreached).events();
    } finally {
      this.#count.executions -= 1;
    }
  }

  async get(id: ExecutionId, within: Deadline): ReturnType<GuestExecutions["get"]> {
    const { execution, bootId } = await translated(this.#link.call(getExecution, { executionId: id }, { within }));
    return { execution: read(execution), bootId: bootIdOf(bootId) };
  }

  async list(within: Deadline): ReturnType<GuestExecutions["list"]> {
    const { executions, bootId } = await translated(this.#link.call(listExecutions, {}, { within }));
    return { executions: executions.map(read), bootId: bootIdOf(bootId) };
  }

  async signal(order: SignalOrder, within: Deadline): Promise<{ readonly alreadyEnded: boolean }> {
    const { executionId, signal, expectedBootId = "" } = order;
    const request = { executionId, signal, expectedBootId };
    const { alreadyEnded } = await translated(this.#link.call(signalExecution, request, { within }));
    return { alreadyEnded };
  }

  async writeStdin(input: StdinInput, within: Deadline): Promise<StdinTaken> {
    const request = { ...input, offset: BigInt(input.offset) };
    const { nextOffset, closed } = await translated(this.#link.call(writeStdin, request, { within }));
    return { nextOffset: Number(nextOffset), closed };
  }

  async cancel(order: CancelOrder, within: Deadline): Promise<{ readonly alreadyEnded: boolean }> {
    const { executionId, graceMs, expectedBootId = "" } = order;
    const grace = graceMs === undefined ? {} : { grace: durationOf(graceMs) };
    const request = { executionId, expectedBootId, ...grace };
    const { alreadyEnded } = await translated(this.#link.call(cancelExecution, request, { within }));
    return { alreadyEnded };
  }
}

/** An observer: it takes nobody's place, and its end means nothing. */
function observed({ executionId, fromOffset, maxOutputBytes, expectedBootId }: AttachWish): Followed {
  return {
    executionId,
    fromOffset,
    maxOutputBytes,
    expectedBootId,
    endsWithClient: false,
    open: observe,
    reopen: observe,
    observe,
  };
}

function read(execution: Execution | undefined): GuestExecution {
  if (execution === undefined || !isExecutionId(execution.executionId)) {
    throw guestErrorOf(new LinkProtocolError("an execution without an id"));
  }
  const { executionId, command, args, startedAt, retainOutput, exited, unconfirmed, hasClient } = execution;
  return {
    executionId,
    command,
    args,
    startedAtMs: startedAt === undefined ? 0 : Number(startedAt.seconds) * 1_000 + Math.floor(startedAt.nanos / 1e6),
    pid: Number(execution.pid),
    retainOutput,
    outputBytes: Number(execution.outputBytes),
    keptFrom: Number(execution.keptFrom),
    exit: exited === undefined ? undefined : exitOf(exited),
    unconfirmed,
    hasClient,
  };
}
