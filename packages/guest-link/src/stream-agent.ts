import { create, type DescMessage, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { EndSchema, OpenSchema } from "@holdfast/api/holdfast/guest/v1/link_pb";
import { linkStreamCloseMs } from "@holdfast/contract";
import { frameTypes } from "./frame.ts";
import type { FramedSocket, SocketListener } from "./framed-socket.ts";
import { LinkLost, LinkProtocolError } from "./link-errors.ts";
import type { CallContext, Router } from "./router.ts";
import { statusOf } from "./status.ts";
import { Upload } from "./upload.ts";

/** How the caller's side of a stream ended: on purpose, or by losing the connection, which is nobody's wish. */
export type CallerEnd = { readonly t: "ended"; readonly clientClosed: boolean } | { readonly t: "lost" };

/** The agent's side of a stream connection: waits for OPEN, runs the handler, sends END. */
export class AgentStream implements SocketListener {
  /** Resolves when the caller's side is over, also after the agent's own END. */
  readonly callerEnd: Promise<CallerEnd>;
  readonly #endedByCaller = Promise.withResolvers<CallerEnd>();
  readonly #socket: FramedSocket;
  readonly #router: Router;
  readonly #bootId: string;
  readonly #onClosed: () => void;
  readonly #over = new AbortController();
  #epoch: bigint | undefined;
  #opened = false;
  #answered = false;
  #upload: Upload | undefined;

  constructor(socket: FramedSocket, router: Router, bootId: string, onClosed: () => void) {
    this.#socket = socket;
    this.#router = router;
    this.#bootId = bootId;
    this.#onClosed = onClosed;
    this.callerEnd = this.#endedByCaller.promise;
  }

  /** The epoch of OPEN, and a signal that aborts when the caller's side is over. */
  get context(): CallContext {
    return { epoch: this.#epoch, signal: this.#over.signal };
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
      // Called here, so that the message is held by nobody but its handler.
      void this.#answer(this.#router.open(open.method, open.message, this));
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
    const bootId = this.#bootId;
    try {
      await handled;
      this.#socket.send(frameTypes.end, toBinary(EndSchema, create(EndSchema, { bootId })));
    } catch (error) {
      if (!this.#over.signal.aborted) {
        this.#socket.send(frameTypes.end, toBinary(EndSchema, create(EndSchema, { bootId, status: statusOf(error) })));
      }
    }
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
