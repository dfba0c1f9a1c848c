import { fromBinary } from "@bufbuild/protobuf";
import { ConnectResponseSchema, PortService } from "@holdfast/api/holdfast/guest/v1/port_pb";
import { type Clock, Deadline } from "@holdfast/async";
import { guestDialTimeoutMs, tunnelConnectTimeoutMs } from "@holdfast/contract";
import { type CallerStream, type GuestLink, LinkLost, LinkProtocolError } from "@holdfast/guest-link";
import type { GuestTunnel, PortWish } from "@holdfast/workspace";
import { guestErrorOf } from "./guest-errors.ts";
import { StreamQueue } from "./stream-queue.ts";

const openTimeoutMs = 2 * guestDialTimeoutMs + tunnelConnectTimeoutMs;

/** Connects to a port of the guest. See `Guest.connectPort`. */
export async function connectPort(
  link: GuestLink,
  clock: Clock,
  wish: PortWish,
  signal: AbortSignal,
): Promise<GuestTunnel> {
  signal.throwIfAborted();
  const queue = new StreamQueue<Uint8Array>();
  const connected = Promise.withResolvers<void>();
  connected.promise.catch(() => undefined); // Awaited below, unless opening fails first.
  const ended = Promise.withResolvers<void>();
  ended.promise.catch(() => undefined); // Told to whoever watches.
  const over = Promise.withResolvers<void>();
  let closed = false;
  const listener = {
    message: (payload: Buffer) => {
      const { event } = fromBinary(ConnectResponseSchema, payload);
      if (event.case === "connected") connected.resolve();
      else if (event.case === "closed") {
        closed = true;
        queue.end(undefined);
      }
    },
    data: (bytes: Buffer) => queue.push(bytes, bytes.length),
    ending: (why: Error) => ended.reject(guestErrorOf(why)),
    over: (error: Error | undefined) => {
      const end = error ?? (closed ? undefined : new LinkProtocolError("a tunnel was called complete in mid-stream"));
      connected.reject(end ?? new LinkLost("the tunnel ended before it stood"));
      queue.end(end);
      if (end) ended.reject(guestErrorOf(end));
      else ended.resolve();
      over.resolve();
    },
  };
  try {
    using within = new Deadline(clock, openTimeoutMs, signal);
    const stream = await link.open(PortService.method.connect, { ...wish }, listener, { within });
    const end = (): void => {
      const reason = within.signal.reason ?? signal.reason;
      connected.reject(reason);
      queue.end(reason instanceof Error ? reason : new Error(String(reason)));
      stream.end({ clientClosed: true });
    };
    within.signal.addEventListener("abort", end, { once: true });
    try {
      await connected.promise;
    } catch (error) {
      stream.end({ clientClosed: true });
      throw error;
    } finally {
      within.signal.removeEventListener("abort", end);
    }
    queue.feedFrom(stream);
    return new LinkedTunnel(stream, queue, { ended, over: over.promise }, signal);
  } catch (error) {
    throw signal.aborted ? signal.reason : guestErrorOf(error);
  }
}

class LinkedTunnel implements GuestTunnel {
  readonly received: AsyncIterable<Uint8Array>;
  readonly ended: Promise<void>;
  readonly #stream: CallerStream;
  readonly #queue: StreamQueue<Uint8Array>;
  readonly #giveUp: (reason: unknown) => void;
  readonly #signal: AbortSignal;
  readonly #onAbort = (): void => this.destroy();
  #sendingClosed = false;

  constructor(
    stream: CallerStream,
    queue: StreamQueue<Uint8Array>,
    { ended, over }: { readonly ended: PromiseWithResolvers<void>; readonly over: Promise<void> },
    signal: AbortSignal,
  ) {
    this.#stream = stream;
    this.#queue = queue;
    this.#signal = signal;
    this.received = this.#receive();
    this.ended = ended.promise;
    this.#giveUp = ended.reject;
    signal.addEventListener("abort", this.#onAbort, { once: true });
    // Not with `ended`: that may come while the reader still has something to read.
    void over.then(() => signal.removeEventListener("abort", this.#onAbort));
    if (signal.aborted) this.destroy();
  }

  async send(data: Uint8Array): Promise<void> {
    if (this.#sendingClosed) throw new Error("sending was closed");
    try {
      if (!this.#stream.sendData(data)) await this.#stream.drained();
    } catch (error) {
      throw guestErrorOf(error);
    }
  }

  closeSending(): void {
    if (this.#sendingClosed) return;
    this.#sendingClosed = true;
    this.#stream.sendEof();
  }

  destroy(): void {
    this.#signal.removeEventListener("abort", this.#onAbort);
    this.#sendingClosed = true;
    const reason = this.#signal.reason;
    const end = reason instanceof Error ? reason : new LinkLost("the tunnel was ended here");
    this.#queue.end(end);
    this.#giveUp(this.#signal.aborted ? reason : guestErrorOf(end));
    this.#stream.end({ clientClosed: true });
  }

  async *#receive(): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      for (let data = await this.#queue.next(); data !== undefined; data = await this.#queue.next()) yield data;
    } catch (error) {
      throw this.#signal.aborted ? this.#signal.reason : guestErrorOf(error);
    }
  }
}
