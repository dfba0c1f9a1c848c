import { fromBinary } from "@bufbuild/protobuf";
import { AttachSessionResponseSchema } from "@holdfast/api/holdfast/guest/v1/session_pb";
import { attachmentIdOf, bootIdOf, outputChunkMaxBytes } from "@holdfast/contract";
import { LinkProtocolError, type StreamListener } from "@holdfast/guest-link";
import type { SessionEvent } from "@holdfast/workspace";
import { sessionExitOf, sessionInfoOf } from "./session-info.ts";
import type { StreamQueue } from "./stream-queue.ts";

/** What an event counts for besides its bytes: a guest may send as many of them as it likes. */
const eventCostBytes = 128;

/**
 * Turns one stream's frames into events, and checks on the way that output is one unbroken sequence: a guest that repeats or skips a
 * byte without saying so breaks the protocol.
 */
export class SessionEvents implements StreamListener {
  readonly #queue: StreamQueue<SessionEvent>;
  readonly #onOver: (error: Error | undefined) => void;
  #position: number;
  #attached = false;
  #exited = false;

  /** `onOver`: told how the stream ends once that is known, perhaps twice, however far its reader is. */
  constructor(
    fromOffset: number,
    queue: StreamQueue<SessionEvent>,
    onOver: (error: Error | undefined) => void = () => undefined,
  ) {
    this.#onOver = onOver;
    this.#position = fromOffset;
    this.#queue = queue;
  }

  message(payload: Buffer): void {
    const { event } = fromBinary(AttachSessionResponseSchema, payload);
    switch (event.case) {
      case "attached": {
        const { attachmentId, nextInputSequence, bootId, offset, session } = event.value;
        this.#at(Number(offset));
        this.#attached = true;
        this.#push({
          t: "attached",
          attachmentId: attachmentIdOf(attachmentId),
          nextInputSequence: Number(nextInputSequence),
          bootId: bootIdOf(bootId),
          offset: this.#position,
          session: sessionInfoOf(session),
        });
        return;
      }
      case "gap": {
        const from = Number(event.value.from);
        const to = Number(event.value.to);
        this.#at(from);
        if (to <= from || !Number.isSafeInteger(to)) throw new LinkProtocolError(`a gap from ${from} to ${to}`);
        this.#position = to;
        this.#push({ t: "gap", from, to });
        return;
      }
      case "exited": {
        const nextOffset = Number(event.value.nextOffset);
        this.#at(nextOffset);
        this.#exited = true;
        this.#push({ t: "exited", exit: sessionExitOf(event.value.exit), nextOffset });
        return;
      }
      default: // A newer agent may say more than this release understands.
    }
  }

  data(bytes: Buffer): void {
    if (!this.#attached) throw new LinkProtocolError("output before the attachment that it belongs to");
    for (let at = 0; at < bytes.length; at += outputChunkMaxBytes) {
      const data = bytes.subarray(at, at + outputChunkMaxBytes);
      this.#push({ t: "output", offset: this.#position, data });
      this.#position += data.length;
    }
  }

  ending(why: Error): void {
    this.#onOver(why);
  }

  over(error: Error | undefined): void {
    const cut = error === undefined && !this.#exited;
    this.#queue.end(cut ? new LinkProtocolError("the stream was called complete without the program's end") : error);
    this.#onOver(error);
  }

  #push(event: SessionEvent): void {
    this.#queue.push(event, (event.t === "output" ? event.data.length : 0) + eventCostBytes);
  }

  #at(offset: number): void {
    if (offset === this.#position) return;
    throw new LinkProtocolError(`output goes on at ${offset}, though it stood at ${this.#position}`);
  }
}
