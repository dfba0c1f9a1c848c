import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  EndCause as EndCauseOnWire,
  type ExecutionEventSchema,
  GapReason,
  OutputChannel,
  StartExecutionResponseSchema,
} from "@holdfast/api/holdfast/guest/v1/execution_pb";
import { type AgentStream, AnsweredError, type CallerEnd } from "@holdfast/guest-link";
import { durationOf } from "./duration.ts";
import type { Departure, EndCause, Execution, ExitResult, Owner } from "./execution.ts";
import type { Channel } from "./output-log.ts";
import { survived } from "./unconfirmed-end.ts";

type EventInit = NonNullable<MessageInitShape<typeof ExecutionEventSchema>["event"]>;

/** Delivers a command's output to one stream, from an offset to the end: what is there and what comes are one sequence. */
export class OutputFollower implements Owner {
  readonly #execution: Execution;
  readonly #stream: AgentStream;
  readonly #limit: number;
  readonly #asOwner: boolean;
  readonly #mayEnd: () => boolean;
  readonly #done = Promise.withResolvers<void>();
  #position: number;
  #delivered = 0;
  /** What the last Segment said, as far as DATA has carried it since. */
  #channel: Channel | undefined;
  #waiting = false;
  /** `started` was sent. */
  #begun = false;
  #over = false;

  constructor(
    execution: Execution,
    stream: AgentStream,
    options: {
      readonly fromOffset: number;
      readonly maxOutputBytes: number | undefined;
      readonly asOwner: boolean;
      /** Whether a wished end of the stream still may end the command. */
      readonly mayEnd: () => boolean;
    },
  ) {
    this.#execution = execution;
    this.#stream = stream;
    this.#position = options.fromOffset;
    this.#limit = options.maxOutputBytes ?? Number.POSITIVE_INFINITY;
    this.#asOwner = options.asOwner;
    this.#mayEnd = options.mayEnd;
  }

  /** Where it is in the output. One that has had all it asked for holds nobody back. */
  get position(): number {
    return this.#delivered >= this.#limit ? this.#execution.log.end : this.#position;
  }

  /** Resolves after `exited` was sent, or when the caller's side is over. Rejects with the answer that stands in its place. */
  async run(joined: boolean, bootId: string): Promise<void> {
    const { log, wish } = this.#execution;
    const stopWatchingLog = log.watch(() => this.#pump());
    const stopWatchingState = this.#execution.watch(() => this.#pump());
    if (this.#asOwner) this.#execution.adopt(this);
    void this.#stream.callerEnd.then((end) => {
      if (this.#asOwner) this.#execution.disown(this, this.#departureOf(end));
      this.#over = true;
      this.#done.resolve();
    });
    try {
      await Promise.race([this.#started(), this.#done.promise]);
      this.#begun = true;
      const pid = BigInt(this.#execution.pid);
      if (!this.#over) this.#send({ case: "started", value: { executionId: wish.id, joined, pid, bootId } });
      this.#pump();
      await this.#done.promise;
    } finally {
      this.#over = true;
      stopWatchingLog();
      stopWatchingState();
      // Nothing is left to read, however long the connection takes to close.
      if (this.#asOwner && this.#execution.state.t === "ended") this.#execution.disown(this, "left-running");
    }
  }

  /** The client of a superseded holder ends nothing by going: the command waits for another, as after a lost link (G5a). */
  #departureOf(end: CallerEnd): Departure {
    if (end.t === "lost" || !this.#mayEnd()) return "lost";
    return end.clientClosed ? "closed" : "left-running";
  }

  #pump(): void {
    if (this.#over || !this.#begun) return;
    const { log } = this.#execution;
    while (this.#position < log.end && this.#delivered < this.#limit) {
      if (this.#stream.isBlocked) {
        this.#pumpOnceDrained();
        return;
      }
      if (this.#position < log.start) {
        this.#gap(log.start, GapReason.LOG_LIMIT);
        continue;
      }
      const piece = log.at(this.#position);
      if (piece === undefined) break;
      this.#deliver(piece.channel, piece.bytes.subarray(0, this.#limit - this.#delivered));
    }
    this.#finishIfEnded();
  }

  #deliver(channel: Channel, bytes: Buffer): void {
    if (this.#channel !== channel) {
      const onWire = channel === "stdout" ? OutputChannel.STDOUT : OutputChannel.STDERR;
      this.#send({ case: "segment", value: { offset: BigInt(this.#position), channel: onWire } });
      this.#channel = channel;
    }
    this.#stream.sendData(bytes);
    this.#position += bytes.length;
    this.#delivered += bytes.length;
  }

  #gap(to: number, reason: GapReason): void {
    this.#send({ case: "gap", value: { from: BigInt(this.#position), to: BigInt(to), reason } });
    this.#position = to;
    this.#channel = undefined; // The next bytes begin elsewhere, so a Segment says where.
  }

  #pumpOnceDrained(): void {
    if (this.#waiting) return;
    this.#waiting = true;
    const again = (): void => {
      this.#waiting = false;
      this.#pump();
      this.#execution.applyHold();
    };
    this.#stream.drained().then(again, () => undefined); // A lost connection is told by callerEnd.
  }

  #finishIfEnded(): void {
    const { state, log, wish } = this.#execution;
    if (state.t === "unconfirmed") {
      this.#over = true;
      this.#done.reject(survived({ kind: "execution", id: wish.id }, state.survivors));
    } else if (state.t === "ended") {
      this.#over = true;
      if (this.#position < log.end) this.#gap(log.end, GapReason.MAX_OUTPUT);
      this.#send({ case: "exited", value: exitedOf(state.exit, log.end) });
      this.#done.resolve();
    }
  }

  /** It is not called started before it is. Rejects where its start, which was still under way, comes to nothing. */
  async #started(): Promise<void> {
    try {
      await this.#execution.started;
    } catch {
      const { id } = this.#execution.wish; // Why, its starter is told.
      throw new AnsweredError(
        "EXECUTION_NOT_FOUND",
        `Execution ${id} was not started after all: its start was refused, as its starter was told. Nothing ran.`,
        { execution_id: id },
      );
    }
  }

  #send(event: EventInit): void {
    // Start and Follow answer with messages of the same layout.
    this.#stream.sendMessage(StartExecutionResponseSchema, { event: { event } });
  }
}

const causesOnWire: Readonly<Record<EndCause, EndCauseOnWire>> = {
  cancelled: EndCauseOnWire.CANCELLED,
  "timed-out": EndCauseOnWire.TIMED_OUT,
  "client-closed": EndCauseOnWire.CLIENT_CLOSED,
  orphaned: EndCauseOnWire.ORPHANED,
  "agent-stopped": EndCauseOnWire.AGENT_STOPPED,
};

/** A command's end, as it is told. */
export function exitedOf(exit: ExitResult, outputBytes: number): Extract<EventInit, { case: "exited" }>["value"] {
  return {
    outcome:
      "signal" in exit.status
        ? { case: "signal", value: exit.status.signal }
        : { case: "code", value: exit.status.code },
    message: exit.message,
    cause: exit.cause === undefined ? EndCauseOnWire.UNSPECIFIED : causesOnWire[exit.cause],
    outputBytes: BigInt(outputBytes),
    outputOpen: exit.outputOpen,
    leftovers: exit.leftovers.map(({ pid, name }) => ({ pid: BigInt(pid), name })),
    runTime: durationOf(exit.ranMs),
  };
}
