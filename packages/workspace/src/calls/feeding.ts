import { backoffMs, type Clock, Deadline, DeadlineExceeded, orAborted, pause } from "@holdfast/async";
import {
  detachAfterInputMs,
  executionCallTimeoutMs,
  signalAfterInputMs,
  stdinTryMs,
  stdinWaitingMaxBytes,
  stdinWriteMaxBytes,
} from "@holdfast/contract";
import { HoldfastError, hasReason } from "@holdfast/errors";
import type { GuestExecutions, StdinInput } from "../ports/executions.ts";
import { type ExecutionEvent, GuestLost, GuestNotReached } from "../ports/guest.ts";
import { InputPieces } from "./input-pieces.ts";

/** What a client sends to its command. */
export type CommandInput =
  | { readonly t: "stdin"; readonly data: Uint8Array }
  | { readonly t: "stdin_end" }
  /** To the process group; by name, with or without "SIG". */
  | { readonly t: "signal"; readonly signal: string }
  /** The client leaves; the command goes on. */
  | { readonly t: "detach" };

export interface FeedingNeeds {
  readonly executions: GuestExecutions;
  readonly started: Extract<ExecutionEvent, { readonly t: "started" }>;
  readonly clock: Clock;
}

const again = { firstMs: 20, maxMs: 500 };

/**
 * The way of one client's input into its command: each byte at its position, so that one whose answer was lost is asked for again and
 * taken once. What waits is bounded: a program that does not read holds its client back. Signals and a detach follow the input before
 * them, but do not wait for ever behind a program that reads nothing.
 */
export class Feeding {
  readonly #needs: FeedingNeeds;
  readonly #end = new AbortController();
  readonly #pieces = new InputPieces(stdinWriteMaxBytes);
  /** Input up to here is in the program's pipe. */
  #position = 0;
  #inputEnds = false;
  /** The program takes no more: what is still sent is dropped, as a pipe without a reader does. */
  #closed = false;
  #isWriting = false;
  #writing: Promise<void> = Promise.resolve();
  /** Why input is no longer taken, and whoever waits meanwhile: one at a time. */
  #writeFailure: { readonly thrown: unknown } | undefined;
  #interrupt: ((thrown: unknown) => void) | undefined;
  #changed = Promise.withResolvers<void>();
  failure: { readonly thrown: unknown } | undefined;
  isDetached = false;

  constructor(needs: FeedingNeeds) {
    this.#needs = needs;
  }

  /** Until the client has nothing more to say, or leaves, and what it said is done. Rejects with `failure`. */
  async run(first: Uint8Array | undefined, input: AsyncIterable<CommandInput>): Promise<"detached" | "all_said"> {
    try {
      if (first !== undefined) this.#enqueue(first);
      const requests = input[Symbol.asyncIterator]();
      for (;;) {
        const request = await this.#orFailed(nextOf(requests));
        if (request === undefined) break;
        await this.#take(request);
        if (this.isDetached) return "detached";
        while (this.#isFull) await this.#orFailed(this.#change());
      }
      await this.#orFailed(this.#writing);
      return "all_said";
    } catch (thrown) {
      if (!this.#end.signal.aborted) this.failure ??= { thrown };
      throw thrown;
    }
  }

  /** The command's output is over: nothing more is sent. */
  end(): void {
    this.#end.abort(new Error("the command's stream is over"));
  }

  async #take(request: CommandInput): Promise<void> {
    switch (request.t) {
      case "stdin":
        if (this.#inputEnds) throw outOfOrder("stdin", "comes after `stdin_end`");
        this.#enqueue(request.data);
        return;
      case "stdin_end":
        this.#inputEnds = true;
        this.#write();
        return;
      case "signal":
        await this.#inOrder(signalAfterInputMs);
        await this.#signal(request.signal);
        return;
      case "detach":
        if (!(await this.#inOrder(detachAfterInputMs))) throw this.#notTaken();
        this.isDetached = true;
    }
  }

  get #isFull(): boolean {
    return this.#pieces.cost >= stdinWaitingMaxBytes && !this.#closed;
  }

  #enqueue(data: Uint8Array): void {
    if (this.#closed) return;
    this.#pieces.push(data);
    this.#write();
  }

  #write(): void {
    if (this.#isWriting) return;
    this.#isWriting = true;
    this.#writing = this.#writeAll().catch((thrown: unknown) => {
      this.#writeFailure = { thrown };
      this.#interrupt?.(thrown);
    });
  }

  async #writeAll(): Promise<void> {
    try {
      let ended = false;
      while (!this.#closed && (this.#pieces.bytes > 0 || (this.#inputEnds && !ended))) ended = await this.#writePiece();
    } finally {
      this.#isWriting = false; // In the same step as the look that found nothing more to write.
    }
  }

  /** True once the end of the input has been written. */
  async #writePiece(): Promise<boolean> {
    const { executionId } = this.#needs.started;
    const data = this.#pieces.peek();
    const end = this.#inputEnds && data.byteLength === this.#pieces.bytes;
    const { closed } = await this.#untilTaken({ executionId, offset: this.#position, data, end });
    this.#position += data.byteLength;
    this.#pieces.drop(data.byteLength);
    if (closed && !end) {
      this.#closed = true;
      this.#pieces.drop(this.#pieces.bytes);
    }
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
    return end;
  }

  /** Asks until the guest has answered: at its position input is taken once, however often it is sent. */
  async #untilTaken(input: StdinInput): Promise<{ readonly closed: boolean }> {
    const { executions, clock } = this.#needs;
    const { signal } = this.#end;
    for (let attempt = 0; ; attempt += 1) {
      using within = new Deadline(clock, stdinTryMs, signal);
      try {
        return await executions.writeStdin(input, within);
      } catch (error) {
        signal.throwIfAborted();
        // Waiting for a program that reads nothing is no failure; it is asked again at once.
        if (error instanceof DeadlineExceeded) attempt = -1;
        else if (!mayBeAskedAgain(error)) throw error;
      }
      if (attempt >= 0) await pause(clock, backoffMs(again, attempt, Math.random()), signal);
    }
  }

  /** Once: whether it was sent is not known where its answer is lost. */
  async #signal(name: string): Promise<void> {
    const { executions, started, clock } = this.#needs;
    using within = new Deadline(clock, executionCallTimeoutMs, this.#end.signal);
    const { executionId, bootId } = started;
    try {
      await executions.signal({ executionId, signal: name, expectedBootId: bootId }, within);
    } catch (error) {
      this.#end.signal.throwIfAborted();
      if (error instanceof HoldfastError) throw error;
      throw new HoldfastError("EXECUTION_DETACHED", {
        message: `Whether ${name} was sent to execution ${executionId} is not known (${String(error)}). The command was not ended by the service. Look at it, and attach to it again.`,
        metadata: { execution_id: executionId },
        cause: error,
      });
    }
  }

  /** False: input that was sent before is still not taken after so long. */
  async #inOrder(waitMs: number): Promise<boolean> {
    if (!this.#isWriting) return true;
    using within = new Deadline(this.#needs.clock, waitMs, this.#end.signal);
    try {
      await this.#orFailed(orAborted(this.#writing, within.signal));
      return true;
    } catch (error) {
      if (error instanceof DeadlineExceeded) return false;
      throw error;
    }
  }

  #notTaken(): HoldfastError {
    const { executionId } = this.#needs.started;
    const bytes = this.#pieces.bytes;
    return new HoldfastError("EXECUTION_DETACHED", {
      message: `The client left execution ${executionId}, which goes on, but the last ${bytes} bytes of its input were not taken: the program does not read them. The input stands at ${this.#position}.`,
      metadata: {
        execution_id: executionId,
        input_taken: String(this.#position),
        input_waiting: String(bytes),
      },
    });
  }

  #change(): Promise<void> {
    return this.#changed.promise;
  }

  #orFailed<Value>(step: Promise<Value>): Promise<Value> {
    return new Promise((resolve, reject) => {
      this.#interrupt = reject;
      step.then(resolve, reject);
      if (this.#writeFailure) reject(this.#writeFailure.thrown);
    });
  }
}

/** The next request; undefined when none comes any more. What ends them is told elsewhere, unless a request was wrong. */
async function nextOf(requests: AsyncIterator<CommandInput>): Promise<CommandInput | undefined> {
  try {
    const { done, value } = await requests.next();
    return done ? undefined : value;
  } catch (thrown) {
    if (isClientsFault(thrown)) throw thrown;
    return undefined;
  }
}

/** Its answer is lost, or it never got there. */
function mayBeAskedAgain(error: unknown): boolean {
  if (error instanceof GuestNotReached) return error.why === "no-connection";
  return error instanceof GuestLost || hasReason(error, "AGENT_UNREACHABLE", "STREAM_CAPACITY");
}

/** What was wrong was in a request. */
export function isClientsFault(thrown: unknown): boolean {
  return hasReason(thrown, "INVALID_REQUEST", "FIELD_NOT_SERVED", "MESSAGE_TOO_LARGE");
}

function outOfOrder(field: string, why: string): HoldfastError {
  return new HoldfastError("INVALID_REQUEST", {
    message: `The call was ended: ${field} ${why}.`,
    metadata: { field },
    violations: [{ field, description: why }],
  });
}
