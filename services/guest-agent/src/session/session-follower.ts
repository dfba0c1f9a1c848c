import type { MessageInitShape } from "@bufbuild/protobuf";
import { AttachSessionResponseSchema } from "@holdfast/api/holdfast/guest/v1/session_pb";
import type { AgentStream, AnsweredError } from "@holdfast/guest-link";
import type { Session } from "./session.ts";
import { exitOnWire } from "./session-rows.ts";

type EventInit = NonNullable<MessageInitShape<typeof AttachSessionResponseSchema>["event"]>;

/**
 * Delivers a session's output to one stream, from an offset on: what is there and what comes are one sequence. It never holds the
 * program back: a reader that falls behind by more than the ring is told what it lost, and goes on (G18).
 */
export class SessionFollower {
  readonly #session: Session;
  readonly #stream: AgentStream;
  readonly #done = Promise.withResolvers<void>();
  #position: number;
  #waiting = false;
  #over = false;

  constructor(session: Session, stream: AgentStream, fromOffset: number) {
    this.#session = session;
    this.#stream = stream;
    this.#position = fromOffset;
  }

  /** Ends the stream: with this answer, or as complete. */
  readonly end = (why: AnsweredError | undefined): void => {
    this.#over = true;
    if (why) this.#done.reject(why);
    else this.#done.resolve();
  };

  /** Sends `attached`, then what there is. Resolves after `exited`, or when the caller's side is over; rejects as `end` says. */
  async run(attached: Extract<EventInit, { case: "attached" }>["value"]): Promise<void> {
    const stopWatching = this.#session.watch(() => this.#pump());
    void this.#stream.callerEnd.then(() => this.end(undefined));
    try {
      this.#send({ case: "attached", value: attached });
      this.#pump();
      await this.#done.promise;
    } finally {
      this.#over = true;
      stopWatching();
    }
  }

  #pump(): void {
    const { log, exit } = this.#session;
    while (!this.#over && this.#position < log.end) {
      if (this.#stream.isBlocked) {
        this.#pumpOnceDrained();
        return;
      }
      if (this.#position < log.start) {
        const gap = { from: BigInt(this.#position), to: BigInt(log.start) };
        this.#send({ case: "gap", value: gap });
        this.#position = log.start;
        continue;
      }
      const piece = log.at(this.#position);
      if (piece === undefined) break;
      this.#stream.sendData(piece.bytes);
      this.#position += piece.bytes.length;
    }
    if (this.#over || exit === undefined) return;
    this.#send({ case: "exited", value: { exit: exitOnWire(exit), nextOffset: BigInt(log.end) } });
    this.end(undefined);
  }

  #pumpOnceDrained(): void {
    if (this.#waiting) return;
    this.#waiting = true;
    const again = (): void => {
      this.#waiting = false;
      this.#pump();
    };
    this.#stream.drained().then(again, () => undefined); // A lost connection is told by callerEnd.
  }

  #send(event: EventInit): void {
    this.#stream.sendMessage(AttachSessionResponseSchema, { event });
  }
}
