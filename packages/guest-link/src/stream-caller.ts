import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { EndSchema, OpenSchema } from "@holdfast/api/holdfast/guest/v1/link_pb";
import type { Clock } from "@holdfast/async";
import { linkSilenceMaxMs, linkStreamCloseMs } from "@holdfast/contract";
import { frameTypes } from "./frame.ts";
import type { FramedSocket, SocketListener } from "./framed-socket.ts";
import { type AnsweredError, LinkLost, LinkProtocolError } from "./link-errors.ts";
import { errorOf } from "./status.ts";

/** Takes what a stream brings. Called from the socket, in order; `over` once, last. */
export interface StreamListener {
  message(payload: Buffer): void;
  data(bytes: Buffer): void;
  /**
   * The agent has ended the stream by force: told at once, also while the stream is paused. What it sent before still comes, for 5 s at
   * most, then `over` with the same reason.
   */
  ending?(why: AnsweredError): void;
  /** Undefined: complete. AnsweredError: the agent's answer. LinkLost: the connection ended first. Comes also while the stream is paused. */
  over(error: Error | undefined): void;
}

/** The caller's side of a stream connection. Made as a spare; carries one stream. */
export class CallerStream implements SocketListener {
  readonly bootId: string;
  readonly features: readonly string[];
  readonly #socket: FramedSocket;
  readonly #clock: Clock;
  readonly #onClosed: () => void;
  #listener: StreamListener | undefined;
  #id: number | undefined;
  #over = false;
  /** Why the agent has ended it by force, until that is delivered. */
  #forced: AnsweredError | undefined;
  #cancelForced: () => void = () => undefined;

  constructor(
    socket: FramedSocket,
    { bootId, features, clock }: { bootId: string; features: readonly string[]; clock: Clock },
    onClosed: () => void,
  ) {
    this.#socket = socket;
    this.#clock = clock;
    this.bootId = bootId;
    this.features = features;
    this.#onClosed = onClosed;
  }

  get isClosed(): boolean {
    return this.#socket.isClosed;
  }

  /** Under which it was opened; undefined before. */
  get id(): number | undefined {
    return this.#id;
  }

  /** Sends OPEN. From here on the guest may have acted. */
  open(
    streamId: number,
    method: string,
    message: Uint8Array,
    epoch: bigint | undefined,
    timeoutMs: number,
    listener: StreamListener,
  ): void {
    const open = create(OpenSchema, {
      method,
      message,
      timeoutMs: BigInt(Math.ceil(timeoutMs)),
      streamId,
      ...(epoch === undefined ? {} : { epoch }),
    });
    this.#socket.send(frameTypes.open, toBinary(OpenSchema, open));
    this.#id = streamId;
    this.#listener = listener;
  }

  /** Sends raw bytes, uncopied. False: wait for `drained()` before sending more. */
  sendData(bytes: Uint8Array): boolean {
    return this.#socket.sendData(bytes);
  }

  /** All bytes have been sent. What the agent sends still comes. */
  sendEof(): void {
    this.#socket.send(frameTypes.eof, nothing);
  }

  /** Resolves once the agent has kept up; rejects with LinkLost when the connection is gone. */
  drained(): Promise<void> {
    return this.#socket.drained();
  }

  /** Stops reading: TCP holds the guest back. What was parsed already is still delivered. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Ends the stream on purpose. The guest learns whether its client wished it; nothing more is delivered. Once; not after END. */
  end(wish: { readonly clientClosed: boolean }): void {
    if (this.#over) return;
    this.#over = true;
    this.#cancelForced();
    this.#listener = silent;
    this.#socket.send(frameTypes.end, toBinary(EndSchema, create(EndSchema, { clientClosed: wish.clientClosed })));
    this.#socket.finish();
    this.#socket.resume(); // Unread bytes would turn the close into a reset, which can overtake END.
    // An agent that stands still has not read END yet. Its next byte into a socket that is gone would be answered by a reset, and what it
    // has not read by then is lost: to it the client would not have gone, but the link.
    const timer = setTimeout(() => this.#socket.destroy(), linkSilenceMaxMs);
    timer.unref();
  }

  destroy(cause: unknown): void {
    this.#socket.destroy(cause);
  }

  frame(type: number, payload: Buffer): void {
    if (this.#listener === undefined) throw new LinkProtocolError(`a frame of type ${type} before OPEN`);
    if (type === frameTypes.message) {
      this.#listener.message(payload);
    } else if (type === frameTypes.end) {
      // A forced end stands, whatever follows it.
      this.#finish(this.#forced ?? errorOf(fromBinary(EndSchema, payload).status));
    } else {
      throw new LinkProtocolError(`a frame of type ${type} is not the agent's to send`);
    }
  }

  data(bytes: Buffer): void {
    if (this.#listener === undefined) throw new LinkProtocolError("bytes before OPEN");
    this.#listener.data(bytes);
  }

  /**
   * The agent has ended the stream by force, and says so by a connection that is never paused. A reader that reads on is given what was
   * sent before, and END in its place; for one that does not the stream is over after 5 s, and what it has not read by then it is not given.
   */
  endByForce(payload: Buffer): void {
    const why = errorOf(fromBinary(EndSchema, payload).status);
    if (why === undefined) throw new LinkProtocolError("a stream that was ended by force without a reason");
    if (this.#over || this.#forced !== undefined) return;
    this.#forced = why;
    this.#cancelForced = this.#clock.schedule(linkStreamCloseMs, () => this.#finish(why));
    this.#listener?.ending?.(why);
  }

  closed(cause: unknown): void {
    this.#finish(this.#forced ?? new LinkLost("the stream's connection closed before its end", cause));
    this.#onClosed();
  }

  #finish(error: Error | undefined): void {
    this.#cancelForced();
    const listener = this.#listener;
    this.#listener = silent;
    this.#over = true;
    this.#socket.destroy();
    listener?.over(error);
  }
}

const nothing = Buffer.alloc(0);

const silent: StreamListener = { message: () => undefined, data: () => undefined, over: () => undefined };
