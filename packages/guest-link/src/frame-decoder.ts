import { frameTypes, headerBytesOf, type LinkPhase, payloadLimits } from "./frame.ts";
import { LinkProtocolError } from "./link-errors.ts";

const nothing = Buffer.alloc(0);
const minPartialBytes = 256;

/** Takes what a connection receives, in order. */
export interface FrameSink {
  /** A whole frame other than DATA. `callId` is 0 where frames bear none. */
  frame(type: number, payload: Buffer, callId: number): void;
  /** Some bytes of a DATA frame, as they arrived: where frames begin and end means nothing in a byte stream. */
  data(bytes: Buffer): void;
}

/**
 * Splits what a socket delivers into frames, wherever reads split. Nothing is copied but headers and messages that
 * span reads; memory held is in proportion to what has arrived of one message, in however small pieces, never to what
 * its length announces.
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
  /** What has arrived of a message that spans reads: the first `#partialFill` bytes. */
  #partial: Buffer = nothing;
  #partialFill = 0;
  #stopped = false;

  /** Nothing is delivered any more, also of the chunk that is being read. */
  stop(): void {
    this.#stopped = true;
    this.#partial = nothing;
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
    } else if (complete && this.#partialFill === 0) {
      sink.frame(this.#type, part, this.#callId);
    } else {
      this.#keep(part, missing);
      if (complete) sink.frame(this.#type, this.#takeKept(), this.#callId);
    }
    return at + part.length;
  }

  /** Lays a part of a message after those before it. `missing` bytes of the message are still to come, the part's included. */
  #keep(part: Buffer, missing: number): void {
    const fill = this.#partialFill + part.length;
    if (fill > this.#partial.length) {
      const grown = Buffer.allocUnsafeSlow(Math.min(this.#partialFill + missing, Math.max(minPartialBytes, fill * 2)));
      this.#partial.copy(grown, 0, 0, this.#partialFill);
      this.#partial = grown;
    }
    part.copy(this.#partial, this.#partialFill);
    this.#partialFill = fill;
  }

  #takeKept(): Buffer {
    const kept = this.#partial.subarray(0, this.#partialFill);
    this.#partial = nothing;
    this.#partialFill = 0;
    return kept;
  }
}
