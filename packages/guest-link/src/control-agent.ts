import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { CallSchema, ReplySchema } from "@holdfast/api/holdfast/guest/v1/link_pb";
import type { Clock } from "@holdfast/async";
import { linkCallsMax, linkUnreadPongsMax, linkUnreadRepliesMaxBytes } from "@holdfast/contract";
import { frameTypes } from "./frame.ts";
import type { FramedSocket, SocketListener } from "./framed-socket.ts";
import { AnsweredError, LinkLost, LinkProtocolError } from "./link-errors.ts";
import type { Router } from "./router.ts";
import { statusOf } from "./status.ts";
import type { ForcedEnd } from "./stream-agent.ts";

const nothing = Buffer.alloc(0);
/** Longer timeouts are not kept here: the caller's CANCEL or closed connection ends the call. */
const longestTimeoutMs = 2 ** 31 - 1;

/** The agent's side of a control connection: runs calls, and answers pings whatever else goes on. */
export class ControlAgent implements SocketListener {
  readonly #socket: FramedSocket;
  readonly #router: Router;
  readonly #bootId: string;
  readonly #onClosed: () => void;
  readonly #running = new Map<number, AbortController>();
  readonly #clock: Clock;
  #pongsUnread = 0;
  /** When the caller was last heard, on the clock's monotonic time. */
  lastHeardMs: number;

  constructor(socket: FramedSocket, router: Router, bootId: string, clock: Clock, onClosed: () => void) {
    this.#clock = clock;
    this.lastHeardMs = clock.monotonicMs();
    this.#socket = socket;
    this.#router = router;
    this.#bootId = bootId;
    this.#onClosed = onClosed;
  }

  frame(type: number, payload: Buffer, callId: number): void {
    this.lastHeardMs = this.#clock.monotonicMs();
    if (type === frameTypes.call) this.#start(callId, payload);
    else if (type === frameTypes.cancel) this.#running.get(callId)?.abort(new LinkLost("the caller gave up"));
    else if (type === frameTypes.ping) this.#pong(callId);
    else throw new LinkProtocolError(`a frame of type ${type} is not the caller's to send`);
  }

  data(): void {}

  closed(cause: unknown): void {
    for (const controller of this.#running.values())
      controller.abort(new LinkLost("the caller's connection closed", cause));
    this.#onClosed();
  }

  destroy(cause: unknown): void {
    this.#socket.destroy(cause);
  }

  /** Tells of a stream of the same caller that was ended by force. */
  tellForced({ streamId, payload }: ForcedEnd): void {
    this.#socket.send(frameTypes.streamEnd, payload, streamId);
    this.#boundUnread();
  }

  /** A caller that is slow is answered; one that only asks would fill the memory with answers. */
  #pong(callId: number): void {
    this.#pongsUnread = this.#socket.isBlocked ? this.#pongsUnread + 1 : 0;
    if (this.#pongsUnread > linkUnreadPongsMax)
      throw new LinkProtocolError(`${linkUnreadPongsMax} pings and none read`);
    this.#socket.send(frameTypes.pong, nothing, callId);
  }

  #start(callId: number, payload: Buffer): void {
    if (this.#running.has(callId)) throw new LinkProtocolError(`call id ${callId} is in use`);
    const call = fromBinary(CallSchema, payload);
    const controller = new AbortController();
    this.#running.set(callId, controller);
    const timeoutMs = Number(call.timeoutMs);
    const timer =
      timeoutMs > 0 && timeoutMs <= longestTimeoutMs
        ? setTimeout(() => controller.abort(new LinkLost("the caller's time ran out")), timeoutMs)
        : undefined;
    const context = { epoch: call.epoch, signal: controller.signal };
    this.#answer(callId, controller.signal, () => {
      if (this.#running.size > linkCallsMax) {
        throw new AnsweredError("STREAM_CAPACITY", `More than ${linkCallsMax} calls at once on one connection.`);
      }
      return this.#router.call(call.method, call.message, context);
    }).finally(() => {
      clearTimeout(timer);
      this.#running.delete(callId);
    });
  }

  async #answer(callId: number, signal: AbortSignal, run: () => Promise<Uint8Array>): Promise<void> {
    const bootId = this.#bootId;
    try {
      const message = await run();
      this.#socket.send(frameTypes.reply, toBinary(ReplySchema, create(ReplySchema, { bootId, message })), callId);
    } catch (error) {
      if (signal.aborted && error === signal.reason) return; // That its time is over the caller knows by itself.
      const reply = create(ReplySchema, { bootId, status: statusOf(error) });
      this.#socket.send(frameTypes.reply, toBinary(ReplySchema, reply), callId);
    }
    this.#boundUnread();
  }

  /** A control connection is never paused, so a caller that does not read what it is told has to go. */
  #boundUnread(): void {
    if (this.#socket.bytesWaiting > linkUnreadRepliesMaxBytes) {
      this.#socket.destroy(new LinkProtocolError(`more than ${linkUnreadRepliesMaxBytes} bytes of replies unread`));
    }
  }
}
