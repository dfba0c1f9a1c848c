import { fromBinary } from "@bufbuild/protobuf";
import {
  EndCause,
  type ExecutionEvent_Exited,
  GapReason,
  OutputChannel,
  StartExecutionResponseSchema,
} from "@holdfast/api/holdfast/guest/v1/execution_pb";
import { bootIdOf, type ExecutionId } from "@holdfast/contract";
import { LinkProtocolError, type StreamListener } from "@holdfast/guest-link";
import type { ExecutionExit } from "@holdfast/workspace";
import type { EventQueue } from "./event-queue.ts";

/**
 * Turns one stream's frames into events, and checks on the way that output is one unbroken sequence: a guest that repeats or
 * skips a byte without saying so breaks the protocol.
 */
export class ExecutionEvents implements StreamListener {
  readonly #executionId: ExecutionId;
  readonly #queue: EventQueue;
  #position: number;
  #stream: "stdout" | "stderr" | undefined;
  #exited = false;

  constructor(executionId: ExecutionId, fromOffset: number, queue: EventQueue) {
    this.#executionId = executionId;
    this.#position = fromOffset;
    this.#queue = queue;
  }

  message(payload: Buffer): void {
    const { event } = fromBinary(StartExecutionResponseSchema, payload).event ?? {};
    switch (event?.case) {
      case "started": {
        const { bootId, joined: attached } = event.value;
        this.#queue.push({ t: "started", executionId: this.#executionId, bootId: bootIdOf(bootId), attached });
        return;
      }
      case "segment":
        this.#at(Number(event.value.offset));
        this.#stream = event.value.channel === OutputChannel.STDERR ? "stderr" : "stdout";
        return;
      case "gap": {
        const from = Number(event.value.from);
        const to = Number(event.value.to);
        this.#at(from);
        if (to <= from || !Number.isSafeInteger(to)) throw new LinkProtocolError(`a gap from ${from} to ${to}`);
        const reason = event.value.reason === GapReason.MAX_OUTPUT ? "max_output" : "dropped";
        this.#position = to;
        this.#stream = undefined;
        this.#queue.push({ t: "gap", from, to, reason });
        return;
      }
      case "exited":
        this.#at(Number(event.value.outputBytes));
        this.#exited = true;
        this.#queue.push({ t: "exited", exit: exitOf(event.value) });
        return;
      default: // A newer agent may say more than this release understands.
    }
  }

  data(bytes: Buffer): void {
    if (this.#stream === undefined) throw new LinkProtocolError("output without a Segment that says where it belongs");
    const offset = this.#position;
    this.#position += bytes.length;
    this.#queue.push({ t: "output", stream: this.#stream, offset, data: bytes });
  }

  over(error: Error | undefined): void {
    const cut = error === undefined && !this.#exited;
    this.#queue.end(cut ? new LinkProtocolError("the stream was called complete without the command's end") : error);
  }

  #at(offset: number): void {
    if (offset === this.#position) return;
    throw new LinkProtocolError(`output goes on at ${offset}, though it stood at ${this.#position}`);
  }
}

/** The end of a command, as the domain has it. */
export function exitOf(exited: ExecutionEvent_Exited): ExecutionExit {
  const { outcome, runTime } = exited;
  if (outcome.case === undefined) throw new LinkProtocolError("an end that says neither code nor signal");
  return {
    status:
      outcome.case === "signal" ? { t: "signal", signal: outcome.value } : { t: "code", code: Number(outcome.value) },
    timedOut: exited.cause === EndCause.TIMED_OUT,
    leftovers: exited.leftovers.map(({ pid, name }) => ({ pid: Number(pid), name })),
    outputBytes: Number(exited.outputBytes),
    ranMs: runTime === undefined ? 0 : Number(runTime.seconds) * 1000 + runTime.nanos / 1_000_000,
    message: exited.message === "" ? undefined : exited.message,
  };
}
