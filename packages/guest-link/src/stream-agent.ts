import { create, type DescMessage, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { EndSchema, OpenSchema } from "@holdfast/api/holdfast/guest/v1/link_pb";
import type { Clock } from "@holdfast/async";
import { linkStreamCloseMs } from "@holdfast/contract";
import { frameTypes } from "./frame.ts";
import type { FramedSocket, SocketListener } from "./framed-socket.ts";
import { type AnsweredError, LinkLost, LinkProtocolError } from "./link-errors.ts";
import type { CallContext, Router } from "./router.ts";
import { statusOf } from "./status.ts";
import { Upload } from "./upload.ts";

/** How the caller's side of a stream ended: on purpose, or by losing the connection, which is nobody's wish. */
export type CallerEnd = { readonly t: "ended"; readonly clientClosed: boolean } | { readonly t: "lost" };

/** An end that the agent has forced: whose stream, and the END that says why. */
export interface ForcedEnd {
  readonly streamId: number;
  readonly payload: Uint8Array;
}

/** What the stream connections of one caller share. */
export interface AgentStreamNeeds {
  readonly router: Router;
  readonly bootId: string;
  readonly clock: Clock;
  /** Tells the caller on its control connections, which are never paused. */
  readonly tellForced: (end: ForcedEnd) => void;
}

/** The agent's side of a stream connection: waits for OPEN, runs the handler, sends END. */
export class AgentStream implements SocketListener {
  /** Resolves when the caller's side is over, also after the agent's own END. */
  readonly callerEnd: Promise<CallerEnd>;
  readonly #endedByCaller = Promise.withResolvers<CallerEnd>();
  readonly #socket: FramedSocket;
  readonly #needs: AgentStreamNeeds;
  readonly #onClosed: () => void;
  readonly #over = new AbortController();
  #epoch: bigint | undefined;
  /** 0: its caller is not told of a forced end on a control connection. */
  #id = 0;
  #opened = false;
  #answered = false;
  #upload: Upload | undefined;
  #forced: ForcedEnd | undefined;
  #cancelDestroy: () => void = () => undefined;

  constructor(socket: FramedSocket, needs: AgentStreamNeeds, onClosed: () => void) {
    this.#socket = socket;
    this.#needs = needs;
    this.#onClosed = onClosed;
    this.callerEnd = this.#endedByCaller.promise;
  }

  /** The epoch of OPEN, and a signal that aborts when the caller's side is over. */
  get context(): CallContext {
    return { epoch: this.#epoch, signal: this.#over.signal };
  }

  /** Set while its caller may not have heard of the forced end. */
  get forcedEnd(): ForcedEnd | undefined {
    return this.#forced;
  }

  /**
   * Ends the stream by force, whatever its caller reads: END goes behind what was sent, its reason also by the control connection, and
   * the socket is destroyed 5 s later. What the handler still sends, or settles with, is dropped. Without effect on a stream that is over.
   */
  endByForce(why: AnsweredError): void {
    if (this.#answered || this.#over.signal.aborted) return;
    const payload = this.#endOf(why);
    this.#finish(payload);
    this.#cancelDestroy = this.#needs.clock.schedule(linkStreamCloseMs, () => this.#socket.destroy(why));
    if (this.#id === 0) return;
    this.#forced = { streamId: this.#id, payload };
    this.#needs.tellForced(this.#forced);
  }

  /** False: wait for `drained()` before sending more. */
  sendMessage<T extends DescMessage>(schema: T, message: MessageInitShape<T>): boolean {
    return this.#socket.send(frameTypes.message, toBinary(schema, create(schema, message)));
  }

  /** Sends raw bytes. They are not copied: whoever passes them leaves them alone. */
  sendData(bytes: Uint8Array): boolean {
    return this.#socket.sendData(bytes);
  }

  /** The bytes that the caller sends. Asked for before the handler first waits: without it they break the protocol. */
  takeUpload(): Upload {
    this.#upload ??= new Upload(this.#socket);
    return this.#upload;
  }

  get isBlocked(): boolean {
    return this.#socket.isBlocked;
  }

  /** Resolves once the caller has kept up; rejects with LinkLost when the connection is gone. */
  drained(): Promise<void> {
    return this.#socket.drained();
  }

  frame(type: number, payload: Buffer): void {
    if (type === frameTypes.open && !this.#opened) {
      this.#opened = true;
      const open = fromBinary(OpenSchema, payload);
      this.#epoch = open.epoch;
      this.#id = open.streamId;
      // Called here, so that the message is held by nobody but its handler.
      void this.#answer(this.#needs.router.open(open.method, open.message, this));
    } else if (type === frameTypes.eof && (this.#upload || this.#answered)) {
      this.#upload?.end();
    } else if (type === frameTypes.end && this.#opened) {
      const end = fromBinary(EndSchema, payload);
      this.#endCaller({ t: "ended", clientClosed: end.clientClosed });
      this.#close();
    } else {
      throw new LinkProtocolError(`a frame of type ${type} out of turn on a stream`);
    }
  }

  data(bytes: Buffer): void {
    if (this.#answered) return; // It may have been sent before the answer was heard.
    if (this.#upload === undefined) throw new LinkProtocolError("this stream takes no bytes from its caller");
    this.#upload.push(bytes);
  }

  closed(): void {
    this.#cancelDestroy();
    this.#endCaller({ t: "lost" });
    this.#onClosed();
  }

  destroy(cause: unknown): void {
    this.#socket.destroy(cause);
  }

  #endCaller(end: CallerEnd): void {
    const over = new LinkLost("the caller's side of the stream is over");
    this.#endedByCaller.resolve(end);
    this.#upload?.end(over);
    this.#over.abort(over);
  }

  async #answer(handled: Promise<void>): Promise<void> {
    let end: Uint8Array | undefined;
    try {
      await handled;
      end = this.#endOf(undefined);
    } catch (error) {
      if (!this.#over.signal.aborted) end = this.#endOf(error);
    }
    if (!this.#answered) this.#finish(end);
  }

  /** As complete, or as failed with this. */
  #endOf(error: unknown): Uint8Array {
    const { bootId } = this.#needs;
    return toBinary(
      EndSchema,
      create(EndSchema, error === undefined ? { bootId } : { bootId, status: statusOf(error) }),
    );
  }

  #finish(end: Uint8Array | undefined): void {
    if (end !== undefined) this.#socket.send(frameTypes.end, end);
    this.#answered = true;
    // What the caller still sends is read and dropped: unread bytes would turn the close into a reset, which can overtake END.
    this.#upload?.end(new LinkLost("the stream has its answer"));
    this.#socket.finish();
  }

  /** What waits to be sent interests nobody any more. */
  #close(): void {
    this.#socket.finish();
    const timer = setTimeout(() => this.#socket.destroy(), linkStreamCloseMs);
    timer.unref();
  }
}
