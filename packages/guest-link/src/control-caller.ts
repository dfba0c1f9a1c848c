import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { CallSchema, type Reply, ReplySchema } from "@holdfast/api/holdfast/guest/v1/link_pb";
import type { Clock, Deadline } from "@holdfast/async";
import { linkPingEveryMs, linkPingMisses, linkSilenceMaxMs } from "@holdfast/contract";
import { frameTypes } from "./frame.ts";
import type { FramedSocket, SocketListener } from "./framed-socket.ts";
import { LinkLost, LinkProtocolError, PeerSilent } from "./link-errors.ts";
import { errorOf } from "./status.ts";

interface PendingCall {
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: unknown) => void;
}

const nothing = Buffer.alloc(0);

/** Who is told what a control connection hears of besides replies. */
export interface ControlListener {
  /** The agent has ended a stream by force. Throws LinkProtocolError where that is no such end. */
  streamEnded(streamId: number, payload: Buffer): void;
  closed(cause: unknown): void;
}

/** The caller's side of a control connection: calls in any number at once, and the pings that judge the peer's liveness. */
export class ControlCaller implements SocketListener {
  readonly #socket: FramedSocket;
  readonly #listener: ControlListener;
  readonly #pending = new Map<number, PendingCall>();
  readonly #clock: Clock;
  #nextId = 1;
  #unanswered = 0;
  #pongs = 0;
  #heardAtMs: number;
  #stopPinging: () => void = () => undefined;
  #stopDemanding: () => void = () => undefined;

  constructor(socket: FramedSocket, clock: Clock, listener: ControlListener) {
    this.#socket = socket;
    this.#clock = clock;
    this.#listener = listener;
    this.#heardAtMs = clock.monotonicMs();
    this.#pingLater();
  }

  get isClosed(): boolean {
    return this.#socket.isClosed;
  }

  /** Calls and waits for the reply. Past the deadline, or cancelled, the agent is told to give up. */
  async call(method: string, message: Uint8Array, epoch: bigint | undefined, within: Deadline): Promise<Reply> {
    within.throwIfOver();
    if (this.isClosed) throw new LinkLost("the control connection closed before the call");
    const id = this.#nextId++;
    const timeoutMs = BigInt(Math.ceil(within.remainingMs()));
    const call = create(CallSchema, { method, message, timeoutMs, ...(epoch === undefined ? {} : { epoch }) });
    this.#socket.send(frameTypes.call, toBinary(CallSchema, call), id);
    const { promise, resolve, reject } = Promise.withResolvers<Reply>();
    this.#pending.set(id, { resolve, reject });
    const onAbort = (): void => {
      this.#socket.send(frameTypes.cancel, nothing, id);
      reject(within.signal.reason);
    };
    within.signal.addEventListener("abort", onAbort, { once: true });
    try {
      const reply = await promise;
      const error = errorOf(reply.status);
      if (error) throw error;
      return reply;
    } finally {
      this.#pending.delete(id);
      within.signal.removeEventListener("abort", onAbort);
    }
  }

  /** Asks for a sign of life now; the peer is silent when none has come by then. */
  demandSign(withinMs: number): void {
    if (this.isClosed) return;
    const before = this.#pongs;
    this.#socket.send(frameTypes.ping, nothing);
    this.#stopDemanding();
    this.#stopDemanding = this.#clock.schedule(withinMs, () => {
      if (this.#pongs === before)
        this.#socket.destroy(new PeerSilent(`the guest gave no sign for ${withinMs} ms`, withinMs));
    });
  }

  close(): void {
    this.#socket.finish();
    this.#socket.destroy();
  }

  frame(type: number, payload: Buffer, callId: number): void {
    if (type === frameTypes.reply) {
      // A reply to a call that was given up finds nobody, and that is right.
      this.#pending.get(callId)?.resolve(fromBinary(ReplySchema, payload));
    } else if (type === frameTypes.pong) {
      this.#unanswered = 0;
      this.#pongs += 1;
      this.#heardAtMs = this.#clock.monotonicMs();
    } else if (type === frameTypes.streamEnd) {
      this.#listener.streamEnded(callId, payload);
    } else {
      throw new LinkProtocolError(`a frame of type ${type} is not the agent's to send`);
    }
  }

  data(): void {}

  closed(cause: unknown): void {
    this.#stopPinging();
    this.#stopDemanding();
    for (const { reject } of this.#pending.values()) {
      reject(new LinkLost("the control connection closed before the reply", cause));
    }
    this.#listener.closed(cause);
  }

  #pingLater(): void {
    // The last ping's time ends with the silence that is borne. Counted in pings: a caller that stood still has heard nothing either.
    const leftMs = this.#heardAtMs + linkSilenceMaxMs - this.#clock.monotonicMs();
    const waitMs = this.#unanswered >= linkPingMisses ? Math.max(0, leftMs) : linkPingEveryMs;
    this.#stopPinging = this.#clock.schedule(waitMs, () => {
      if (this.#unanswered >= linkPingMisses) {
        this.#socket.destroy(new PeerSilent(`the guest was silent for ${linkSilenceMaxMs} ms`, linkSilenceMaxMs));
        return;
      }
      this.#unanswered += 1;
      this.#socket.send(frameTypes.ping, nothing);
      this.#pingLater();
    });
  }
}
