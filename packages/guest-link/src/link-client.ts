import {
  create,
  type DescMessage,
  type DescMethodStreaming,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { type Clock, Deadline, orAborted, pause, Slots } from "@holdfast/async";
import {
  type GuestFeature,
  guestDialTimeoutMs,
  linkDialsMax,
  linkIdleCloseMs,
  linkLastSignMs,
  linkMessageMaxBytes,
  linkSilenceMaxMs,
  linkSparesMax,
} from "@holdfast/contract";
import { ControlCaller } from "./control-caller.ts";
import type { FramedSocket } from "./framed-socket.ts";
import { dial, type LinkTarget, newClientId } from "./handshake-caller.ts";
import { AnsweredError, LinkLost, NothingSent, PeerSilent } from "./link-errors.ts";
import { OpenStreams } from "./open-streams.ts";
import { methodNameOf } from "./router.ts";
import { CallerStream, type StreamListener } from "./stream-caller.ts";

/** Room for the envelope around a message. */
const envelopeMaxBytes = 1024;
const redialEveryMs = 1_000;
/** Why a guest cannot be reached, where no further try would change it. Want of room, or a name that does not resolve just now, passes. */
const forGood: ReadonlySet<NothingSent["why"]> = new Set(["token-refused", "protocol-mismatch", "closed"]);

/** How a call or stream is made. */
export interface CallOptions {
  readonly within: Deadline;
  readonly epoch?: bigint;
  /** Of a stream: a feature without which the guest would serve it in a weaker form. Refused unless announced; nothing is sent then. */
  readonly needs?: GuestFeature;
}

/** Calls and streams to one guest. */
export type GuestLink = Pick<LinkClient, "call" | "open">;

/**
 * The caller's side of a link to one guest: one control connection, one connection per stream, and spares so that a stream
 * need not wait for its handshake. Dials at the first call; without calls and streams for a while it closes everything and
 * keeps no timer.
 */
export class LinkClient {
  readonly #target: LinkTarget;
  readonly #clock: Clock;
  readonly #clientId = newClientId();
  readonly #closed = new AbortController();
  readonly #spares = new Set<CallerStream>();
  readonly #streams = new OpenStreams();
  readonly #dials = new Slots(linkDialsMax);
  #control: Promise<ControlCaller> | undefined;
  #retired = false;
  #dialingSpares = 0;
  #inUse = 0;
  #cancelIdle: (() => void) | undefined;

  constructor(target: LinkTarget, clock: Clock) {
    this.#target = target;
    this.#clock = clock;
  }

  /** Streams that are open. */
  get openStreams(): number {
    return this.#streams.size;
  }

  /** The same link, whose calls and streams all carry this epoch; undefined: none. */
  under(epoch: number | undefined): GuestLink {
    if (epoch === undefined) return this;
    const carried = { epoch: BigInt(epoch) };
    return {
      call: (method, request, options) => this.call(method, request, { ...options, ...carried }),
      open: (method, request, listener, options) => this.open(method, request, listener, { ...options, ...carried }),
    };
  }

  /** Calls a method and waits for its response. NothingSent, AnsweredError, LinkLost, or the deadline's own reason. */
  async call<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    options: CallOptions,
  ): Promise<MessageShape<O>> {
    const message = encode(method.input, request);
    return this.#used(async () => {
      const control = await this.#controlled(options.within);
      const reply = await control.call(methodNameOf(method), message, options.epoch, options.within);
      return fromBinary(method.output, reply.message);
    });
  }

  /**
   * Opens a stream. A rejection is NothingSent or the deadline's reason, and nothing was sent; once this resolves, OPEN is on
   * its way and the listener hears how it ends.
   */
  async open<I extends DescMessage, O extends DescMessage>(
    method: DescMethodStreaming<I, O>,
    request: MessageInitShape<I>,
    listener: StreamListener,
    options: CallOptions,
  ): Promise<CallerStream> {
    const message = encode(method.input, request);
    if (this.#retired) throw new NothingSent("closed", "The guest's pod is gone.");
    return this.#used(async () => {
      const taking = this.#takeStream(options.within);
      taking.catch(() => undefined); // Awaited below, unless the control connection fails first.
      try {
        await this.#controlled(options.within);
      } catch (error) {
        taking.then((unused) => this.#keepSpare(unused)).catch(() => undefined); // It failed as well: one reason is enough.
        throw error;
      }
      const stream = await taking;
      if (stream.isClosed)
        throw new NothingSent("no-connection", "The guest closed the connection before it was used.");
      if (options.needs !== undefined && !stream.features.includes(options.needs)) {
        this.#keepSpare(stream);
        throw featureMissing(options.needs);
      }
      const id = this.#streams.add(stream);
      this.#inUse += 1;
      stream.open(id, methodNameOf(method), message, options.epoch, options.within.remainingMs(), listener);
      this.#replenish();
      return stream;
    });
  }

  /**
   * For a guest whose pod is said to be gone: opens no stream to it any more (NothingSent). Those that stand go on to their end, since what
   * the guest sent before is still to be read; but where a control connection stands and is silent from here on, they are over soon.
   */
  retire(): void {
    if (this.#retired) return;
    this.#retired = true;
    this.#control?.then((control) => control.demandSign(linkLastSignMs)).catch(() => undefined); // Not connected: nobody to ask.
  }

  /** Closes everything. Streams end with LinkLost; what runs in the guest goes on. */
  close(): void {
    this.#closed.abort(new NothingSent("closed", "This client of the guest is closed."));
    this.#disconnect(new LinkLost("this client of the guest was closed"));
    this.#streams.destroyAll(new LinkLost("this client of the guest was closed"));
  }

  async #used<T>(work: () => Promise<T>): Promise<T> {
    this.#closed.signal.throwIfAborted();
    this.#inUse += 1;
    this.#cancelIdle?.();
    this.#cancelIdle = undefined;
    try {
      return await work();
    } finally {
      this.#release();
    }
  }

  #release(): void {
    this.#inUse -= 1;
    if (this.#inUse > 0) return;
    if (this.#control === undefined && this.#spares.size === 0) return;
    this.#cancelIdle?.();
    this.#cancelIdle = this.#clock.schedule(linkIdleCloseMs, () => {
      this.#cancelIdle = undefined;
      this.#disconnect(new LinkLost("idle"));
    });
  }

  #disconnect(cause: unknown): void {
    this.#cancelIdle?.();
    this.#cancelIdle = undefined;
    for (const spare of this.#spares) spare.destroy(cause);
    this.#spares.clear(); // At once: one that is taken before its close is heard of would be of no use.
    this.#control?.then((control) => control.close()).catch(() => undefined); // A dial that failed has told its callers.
    this.#control = undefined;
  }

  /** The control connection, dialled once for all who ask at the time. */
  #controlled(within: Deadline): Promise<ControlCaller> {
    this.#control ??= this.#dialControl();
    return orAborted(this.#control, within.signal);
  }

  #dialControl(): Promise<ControlCaller> {
    const closed = (cause: unknown): void => {
      if (this.#control === dialing) this.#control = undefined;
      // It has answered for the streams: their time is over with its own.
      if (cause instanceof PeerSilent) this.#streams.destroyAll(cause);
      else if (this.#streams.size > 0 && !this.#closed.signal.aborted) void this.#keepControlled();
    };
    const streamEnded = (id: number, payload: Buffer): void => this.#streams.endByForce(id, payload);
    const dialing = this.#dial("control", (socket) => new ControlCaller(socket, this.#clock, { streamEnded, closed }));
    dialing.catch(() => {
      if (this.#control === dialing) this.#control = undefined;
    });
    return dialing;
  }

  /** Streams live only as long as a control connection can answer for them. */
  async #keepControlled(): Promise<void> {
    using within = new Deadline(this.#clock, linkSilenceMaxMs, this.#closed.signal);
    while (this.#streams.size > 0) {
      try {
        await this.#controlled(within);
        return;
      } catch (error) {
        if (within.signal.aborted || !(error instanceof NothingSent) || forGood.has(error.why)) {
          this.#streams.destroyAll(new LinkLost("the guest cannot be reached any more", error));
          return;
        }
        await pause(this.#clock, redialEveryMs, within.signal).catch(() => undefined); // Its time is over, which the next try says.
      }
    }
  }

  /** A spare if there is one, else a new connection. */
  async #takeStream(within: Deadline): Promise<CallerStream> {
    const [spare] = this.#spares;
    if (spare !== undefined) {
      this.#spares.delete(spare);
      return spare;
    }
    const dialing = this.#dialStream();
    return orAborted(dialing, within.signal).catch((error) => {
      dialing.then((late) => this.#keepSpare(late)).catch(() => undefined); // Whoever wanted it has its own reason.
      throw error;
    });
  }

  #keepSpare(stream: CallerStream): void {
    if (stream.isClosed) return;
    const wanted = this.#control !== undefined && this.#spares.size < linkSparesMax;
    if (wanted) this.#spares.add(stream);
    else stream.destroy(new LinkLost("not needed"));
  }

  /** In the background, and only beside work: the next stream finds a connection ready. */
  #replenish(): void {
    while (this.#spares.size + this.#dialingSpares < linkSparesMax) {
      this.#dialingSpares += 1;
      this.#dialStream()
        .then((spare) => this.#keepSpare(spare))
        .catch(() => undefined) // Only a spare: the stream that needs a connection dials, and reports, by itself.
        .finally(() => {
          this.#dialingSpares -= 1;
        });
    }
  }

  #dialStream(): Promise<CallerStream> {
    return this.#dial("stream", (socket, bootId, features) => {
      const clock = this.#clock;
      const stream: CallerStream = new CallerStream(socket, { bootId, features, clock }, () => {
        this.#spares.delete(stream);
        if (this.#streams.delete(stream)) this.#release();
      });
      return stream;
    });
  }

  async #dial<T extends ControlCaller | CallerStream>(
    phase: "control" | "stream",
    make: (socket: FramedSocket, bootId: string, features: readonly string[]) => T,
  ): Promise<T> {
    using within = new Deadline(this.#clock, guestDialTimeoutMs, this.#closed.signal);
    let made: T | undefined;
    const connect = async (): Promise<void> => {
      await dial(
        this.#target,
        phase,
        this.#clientId,
        ({ socket, bootId, features }) => {
          made = make(socket, bootId, features);
          return made;
        },
        within.signal,
      );
    };
    try {
      // Waiting for a turn is part of the time: where nobody answers, those that wait learn it as soon as the first.
      await (phase === "control" ? connect() : this.#dials.run(connect));
    } catch (error) {
      if (within.expired) {
        const where = `${this.#target.host}:${this.#target.port}`;
        throw new NothingSent("no-connection", `No guest answers at ${where} within ${guestDialTimeoutMs} ms.`, error);
      }
      throw error;
    }
    if (made === undefined) throw new Error("a connection without a listener");
    return made;
  }
}

function featureMissing(feature: GuestFeature): AnsweredError {
  return new AnsweredError(
    "GUEST_FEATURE_MISSING",
    `The guest's agent does not know ${feature}, which this call needs. Nothing was sent. Suspend and resume the workspace with a newer image.`,
    { feature },
  );
}

function encode<T extends DescMessage>(schema: T, init: MessageInitShape<T>): Uint8Array {
  const message = toBinary(schema, create(schema, init));
  const limit = linkMessageMaxBytes - envelopeMaxBytes;
  if (message.length > limit) {
    throw new AnsweredError(
      "MESSAGE_TOO_LARGE",
      `The request is ${message.length} bytes; the link to the guest carries at most ${limit}. Nothing was sent.`,
      { bytes: String(message.length), limit: String(limit) },
    );
  }
  return message;
}
