import type { Socket } from "node:net";
import { linkDataMaxBytes, linkKeepAliveMs } from "@holdfast/contract";
import { type FrameType, frameTypes, headerBytesOf, type LinkPhase, payloadLimits, writeHeader } from "./frame.ts";
import { FrameDecoder, type FrameSink } from "./frame-decoder.ts";
import { AnsweredError, LinkLost } from "./link-errors.ts";

/** Who listens to a connection. Replaced when the handshake is over. */
export interface SocketListener extends FrameSink {
  /** The connection is closed; called once, last. */
  closed(cause: unknown): void;
}

/** A payload up to this size is laid out beside its header: one small copy is cheaper than two writes. */
const joinedPayloadMaxBytes = 2 * 1024;

/**
 * One socket that speaks frames. What is sent within a tick leaves together; what is large is passed on uncopied.
 * A send returns false when the peer is not keeping up: the sender waits for `drained()` before it sends more.
 */
export class FramedSocket {
  /** Replaced only when the handshake is over. */
  listener: SocketListener;
  readonly #socket: Socket;
  readonly #decoder = new FrameDecoder();
  #corked = false;
  #closed = false;
  #cause: unknown;
  #drained: PromiseWithResolvers<void> | undefined;
  /** To whoever listens at that moment: the listener may change within one chunk. */
  readonly #sink: FrameSink = {
    frame: (type, payload, callId) => this.listener.frame(type, payload, callId),
    data: (bytes) => this.listener.data(bytes),
  };

  constructor(socket: Socket, listener: SocketListener) {
    this.#socket = socket;
    this.listener = listener;
    socket.setNoDelay(true);
    // A connection that the network has forgotten, of a caller that has made others since, is heard of by nothing else. A slow one's
    // kernel answers. Seldom, since an outage of 10 s in just that moment ends it.
    socket.setKeepAlive(true, linkKeepAliveMs);
    socket.on("data", (chunk) => this.#onData(chunk));
    socket.on("drain", () => this.#onDrain());
    socket.on("error", (error) => {
      this.#cause ??= error;
    });
    socket.on("close", () => this.#onClose());
  }

  get phase(): LinkPhase {
    return this.#decoder.phase;
  }

  /** Ends the handshake. Called from within the delivery of its last frame. */
  enter(phase: "control" | "stream", listener: SocketListener): void {
    this.#decoder.phase = phase;
    this.listener = listener;
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  /** Bytes received in all. */
  get bytesRead(): number {
    return this.#socket.bytesRead;
  }

  /** Bytes that were sent and have not left yet. */
  get bytesWaiting(): number {
    return this.#socket.writableLength;
  }

  /** True while the peer is not keeping up. */
  get isBlocked(): boolean {
    return this.#socket.writableNeedDrain;
  }

  /** Sends one frame; false when the sender should wait. Sending on a closed connection does nothing. */
  send(type: FrameType, payload: Uint8Array, callId = 0): boolean {
    if (this.#closed || this.#socket.writableEnded) return false;
    const limit = payloadLimits[this.phase].get(type) ?? 0;
    if (payload.length > limit) {
      throw new AnsweredError(
        "MESSAGE_TOO_LARGE",
        `A message of ${payload.length} bytes was not sent: the link to the guest carries at most ${limit}.`,
        { bytes: String(payload.length), limit: String(limit) },
      );
    }
    this.#cork();
    const size = headerBytesOf(this.phase);
    if (payload.length <= joinedPayloadMaxBytes) {
      const frame = Buffer.allocUnsafe(size + payload.length);
      writeHeader(frame, this.phase, type, payload.length, callId);
      frame.set(payload, size);
      return this.#socket.write(frame);
    }
    const header = Buffer.allocUnsafe(size);
    writeHeader(header, this.phase, type, payload.length, callId);
    this.#socket.write(header);
    return this.#socket.write(payload);
  }

  /** Sends bytes as DATA frames, as many as their length needs. */
  sendData(bytes: Uint8Array): boolean {
    let ready = true;
    for (let at = 0; at < bytes.length; at += linkDataMaxBytes) {
      ready = this.send(frameTypes.data, bytes.subarray(at, at + linkDataMaxBytes));
    }
    return ready;
  }

  /** Resolves once the peer has kept up; rejects with LinkLost when the connection closes first. */
  drained(): Promise<void> {
    if (this.#closed) return Promise.reject(this.#lost());
    if (!this.isBlocked) return Promise.resolve();
    if (this.#drained === undefined) {
      this.#drained = Promise.withResolvers();
      this.#drained.promise.catch(() => undefined); // Whoever waits sees it; nobody may.
    }
    return this.#drained.promise;
  }

  /** Stops reading. What was parsed from the chunk at hand is still delivered. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Closes after what was sent has left. What still comes is delivered until the peer closes. */
  finish(): void {
    this.#socket.end();
  }

  /** Closes now. */
  destroy(cause?: unknown): void {
    this.#cause ??= cause;
    this.#decoder.stop();
    this.#socket.destroy();
  }

  #cork(): void {
    if (this.#corked) return;
    this.#corked = true;
    this.#socket.cork();
    process.nextTick(() => {
      this.#corked = false;
      this.#socket.uncork();
    });
  }

  #onData(chunk: Buffer): void {
    try {
      this.#decoder.push(chunk, this.#sink);
    } catch (error) {
      this.destroy(error);
    }
  }

  #onDrain(): void {
    const waiting = this.#drained;
    this.#drained = undefined;
    waiting?.resolve();
  }

  #onClose(): void {
    this.#closed = true;
    this.#decoder.stop();
    this.#drained?.reject(this.#lost());
    this.#drained = undefined;
    this.listener.closed(this.#cause);
  }

  #lost(): LinkLost {
    return new LinkLost("the connection closed", this.#cause);
  }
}
