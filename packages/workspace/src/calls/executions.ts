import { Deadline } from "@holdfast/async";
import { executionCallTimeoutMs, type HolderEpoch } from "@holdfast/contract";
import { HoldfastError, hasReason } from "@holdfast/errors";
import type { AttachWish, CancelOrder, GuestExecutions, SignalOrder } from "../ports/executions.ts";
import type { ExecutionEvent, ExecutionWish, Guest } from "../ports/guest.ts";
import type { Handle } from "../state/handle.ts";
import type { BoundGuest } from "../state/workspace-state.ts";
import { cancelExecution } from "./cancel-execution.ts";
import { type EpochClaim, readsOnly } from "./epoch-claim.ts";
import { execute, executionGone } from "./execute.ts";
import { askGuest, callGuest, type Lost } from "./guest-call.ts";
import { type CommandInput, interactive } from "./interactive.ts";
import { readLost } from "./session-refusals.ts";

/**
 * The commands of one workspace, as its guest has them. Admission, the one rebind and the one re-read are inside. Reading carries no
 * epoch; whatever changes something carries its caller's.
 */
export class WorkspaceExecutions {
  readonly #ws: Handle;
  readonly #epoch: HolderEpoch | undefined;
  readonly #named: (error: unknown) => unknown;

  /** `named` adds to an error what it is about. */
  constructor(ws: Handle, epoch: HolderEpoch | undefined, named: (error: unknown) => unknown) {
    this.#ws = ws;
    this.#epoch = epoch;
    this.#named = named;
  }

  /** Runs a command whose input comes bit by bit. `input` is pulled once the command is known to run. */
  async *interactive(
    wish: ExecutionWish,
    input: AsyncIterable<CommandInput>,
    signal: AbortSignal,
  ): AsyncGenerator<ExecutionEvent, void> {
    const { clock } = this.#ws.deps;
    const start = { ...wish, stdin: undefined, streamedStdin: true };
    const call = (guest: Guest): AsyncIterable<ExecutionEvent> =>
      interactive({ guest, wish: start, first: wish.stdin, input, clock }, signal);
    const started = execute(this.#ws, start, this.#epoch, signal, { feature: "execution-control", call });
    yield* this.#told(started);
  }

  /** Follows a command: signals nothing, holds nothing back, ends nothing. */
  async *attach(wish: AttachWish, signal: AbortSignal): AsyncGenerator<ExecutionEvent, void> {
    const ws = this.#ws;
    let offset = wish.fromOffset;
    const open = async function* (guest: Guest, bound: BoundGuest): AsyncGenerator<ExecutionEvent> {
      for await (const event of guest.executions.attach(wish, signal)) {
        if (event.t === "started") ws.noteBootId(bound, event.bootId);
        else if (event.t === "output") offset = event.offset + event.data.length;
        else if (event.t === "gap") offset = event.to;
        yield event;
      }
    };
    const lost: Lost = (cause, gone) =>
      gone ? executionGone(ws, gone, wish.executionId, offset, cause) : attachLost(ws, wish, offset, cause);
    try {
      yield* this.#told(
        callGuest(ws, { feature: undefined, claim: readsOnly, holds: "executions", open, lost }, signal),
      );
    } catch (error) {
      throw hasReason(error, "EXECUTION_DETACHED") ? asFollower(error) : error;
    }
  }

  async get(id: Parameters<GuestExecutions["get"]>[0], signal: AbortSignal): ReturnType<GuestExecutions["get"]> {
    return await this.#read(signal, (executions, within) => executions.get(id, within));
  }

  async list(signal: AbortSignal): ReturnType<GuestExecutions["list"]> {
    return await this.#read(signal, (executions, within) => executions.list(within));
  }

  /** EXECUTION_DETACHED: it was asked for and not answered. */
  async signal(order: SignalOrder, caller: AbortSignal): Promise<{ readonly alreadyEnded: boolean }> {
    const { executionId, signal } = order;
    const lost = (cause: Error): HoldfastError =>
      new HoldfastError("EXECUTION_DETACHED", {
        message: `Whether ${signal} was sent to execution ${executionId} is not known: the link to the guest of workspace ${this.#ws.id} broke, or it did not answer in time (${cause.message}). The command was not ended by the service. Look at it before you signal again.`,
        metadata: { execution_id: executionId },
        cause,
      });
    const claim = { changes: true, epoch: this.#epoch };
    return await this.#ask(claim, lost, caller, ({ executions }, within) => executions.signal(order, within));
  }

  /**
   * Ends a command and resolves once nothing of it is left. One whose end could not be confirmed keeps its pod, and is told as an event
   * before it is thrown (L43).
   */
  async cancel(order: CancelOrder, caller: AbortSignal): Promise<{ readonly alreadyEnded: boolean }> {
    try {
      return await cancelExecution(this.#ws, order, this.#epoch, caller);
    } catch (error) {
      throw this.#named(error);
    }
  }

  async #read<Answer extends { readonly bootId: Parameters<Handle["noteBootId"]>[1] }>(
    signal: AbortSignal,
    ask: (executions: GuestExecutions, within: Deadline) => Promise<Answer>,
  ): Promise<Answer> {
    const lost = (cause: Error): HoldfastError => readLost(this.#ws, cause);
    return await this.#ask(readsOnly, lost, signal, async ({ executions }, within, bound) => {
      const answer = await ask(executions, within);
      this.#ws.noteBootId(bound, answer.bootId);
      return answer;
    });
  }

  async #ask<Answer>(
    claim: EpochClaim,
    lost: (cause: Error) => HoldfastError,
    caller: AbortSignal,
    ask: (guest: Guest, within: Deadline, bound: BoundGuest) => Promise<Answer>,
  ): Promise<Answer> {
    const inTime = async (guest: Guest, bound: BoundGuest): Promise<Answer> => {
      using within = new Deadline(this.#ws.deps.clock, executionCallTimeoutMs, caller);
      return await ask(guest, within, bound);
    };
    try {
      return await askGuest(this.#ws, { feature: "execution-control", claim, ask: inTime, lost }, caller);
    } catch (error) {
      throw this.#named(error);
    }
  }

  async *#told(events: AsyncGenerator<ExecutionEvent, void>): AsyncGenerator<ExecutionEvent, void> {
    try {
      yield* events;
    } catch (error) {
      throw this.#named(error);
    }
  }
}

/** A follower's link is gone for good. */
function attachLost(ws: Handle, { executionId }: AttachWish, offset: number, cause: Error): HoldfastError {
  return new HoldfastError("EXECUTION_DETACHED", {
    message: `The link to the guest of workspace ${ws.id} was lost (${cause.message}). Execution ${executionId} was not ended by the service; it goes on while its pod does. Attach to it from offset ${offset}.`,
    metadata: { execution_id: executionId, next_offset: String(offset) },
    onAttach: true,
    cause,
  });
}

/** The guest's client does not know that the call changed nothing. */
function asFollower({ reason, message, metadata, cause }: HoldfastError): HoldfastError {
  return new HoldfastError(reason, { message, metadata, onAttach: true, cause });
}
