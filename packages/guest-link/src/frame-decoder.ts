import { frameTypes, headerBytesOf, type LinkPhase, payloadLimits } from "./frame.ts";
import { LinkProtocolError } from "./link-errors.ts";

/** Takes what a connection receives, in order. */
export interface FrameSink {
  /** A whole frame other than DATA. `callId` is 0 where frames bear none. */
  frame(type: number, payload: Buffer, callId: number): void;
  /** Some bytes of a DATA frame, as they arrived: where frames begin and end means nothing in a byte stream. */
  data(bytes: Buffer): void;
}

/**
 * Splits what a socket delivers into frames, wherever reads split. Nothing is copied but headers and messages that
 * span reads; memory held is what has arrived of one message, never what its length announces.
 */
export class FrameDecoder {
  /** Set by the sink when the handshake is over, from within its own call: the next header is read by it. */
  phase: LinkPhase = "handshake";
  readonly #header = Buffer.alloc(9);
  #headerFill = 0;
  #type = 0;
  #callId = 0;
  /** Payload bytes still to come; undefined between frames. */
  #missing: number | undefined;
  #parts: Buffer[] = [];
  #stopped = false;

  /** Nothing is delivered any more, also of the chunk that is being read. */
  stop(): void {
    this.#stopped = true;
    this.#parts = [];
  }

  /** Delivers the frames that this chunk completes. Throws LinkProtocolError, after which the decoder is of no use. */
  push(chunk: Buffer, sink: FrameSink): void {
    let at = 0;
    while (at < chunk.length && !this.#stopped) {
      at = this.#missing === undefined ? this.#readHeader(chunk, at, sink) : this.#readPayload(chunk, at, sink);
    }
  }

  #readHeader(chunk: Buffer, at: number, sink: FrameSink): number {
    const size = headerBytesOf(this.phase);
    const taken = Math.min(size - this.#headerFill, chunk.length - at);
    chunk.copy(this.#header, this.#headerFill, at, at + taken);
    this.#headerFill += taken;
    if (this.#headerFill < size) return at + taken;
    this.#headerFill = 0;
    const length = this.#header.readUInt32BE(0);
    this.#type = this.#header.readUInt8(4);
    this.#callId = this.phase === "control" ? this.#header.readUInt32BE(5) : 0;
    const limit = payloadLimits[this.phase].get(this.#type);
    if (limit === undefined) throw new LinkProtocolError(`a frame of type ${this.#type} has no place in ${this.phase}`);
    if (length > limit) {
      throw new LinkProtocolError(`a frame of type ${this.#type} announces ${length} bytes; at most ${limit} are read`);
    }
    if (length > 0) this.#missing = length;
    else if (this.#type !== frameTypes.data) sink.frame(this.#type, Buffer.alloc(0), this.#callId);
    return at + taken;
  }

  #readPayload(chunk: Buffer, at: number, sink: FrameSink): number {
    const missing = this.#missing ?? 0;
    const part = chunk.subarray(at, at + missing);
    const complete = part.length === missing;
    this.#missing = complete ? undefined : missing - part.length;
    if (this.#type === frameTypes.data) {
      sink.data(part);
    } else if (!complete) {
      this.#parts.push(part);
    } else {
      const payload = this.#parts.length === 0 ? part : Buffer.concat([...this.#parts, part]);
      this.#parts = [];
      sink.frame(this.#type, payload, this.#callId);
    }
    return at + part.length;
  }
}
