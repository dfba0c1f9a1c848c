import type { DescMethodServerStreaming } from "@bufbuild/protobuf";
import { type DescMessage, fromBinary, type MessageInitShape, type MessageShape } from "@bufbuild/protobuf";
import { type Clock, Deadline } from "@holdfast/async";
import { guestDialTimeoutMs } from "@holdfast/contract";
import type { GuestLink } from "@holdfast/guest-link";
import { guestErrorOf } from "./guest-errors.ts";
import { StreamQueue } from "./stream-queue.ts";

/** A dial has its own deadline, and says more than this one, which only makes sure. */
const openTimeoutMs = 2 * guestDialTimeoutMs;

/** A message of the method, or bytes. */
export type Received<O extends DescMessage> =
  | { readonly t: "message"; readonly message: MessageShape<O> }
  | { readonly t: "data"; readonly data: Buffer };

/** Where the streams of one client go. */
export interface StreamPath {
  readonly link: GuestLink;
  readonly clock: Clock;
}

/** Opens a stream and gives what it brings to `read`, which yields what it makes of it. Ends the stream when its reader or the signal does. */
export async function* download<I extends DescMessage, O extends DescMessage, T>(
  { link, clock }: StreamPath,
  method: DescMethodServerStreaming<I, O>,
  request: MessageInitShape<I>,
  signal: AbortSignal,
  read: (queue: StreamQueue<Received<O>>) => AsyncIterable<T>,
): AsyncGenerator<T, void, undefined> {
  signal.throwIfAborted();
  const queue = new StreamQueue<Received<O>>();
  const listener = {
    message: (payload: Buffer) =>
      queue.push({ t: "message", message: fromBinary(method.output, payload) }, payload.length),
    data: (data: Buffer) => queue.push({ t: "data", data }, data.length),
    over: (error: Error | undefined) => queue.end(error),
  };
  try {
    using within = new Deadline(clock, openTimeoutMs, signal);
    const stream = await link.open(method, request, listener, { within });
    const onAbort = (): void => {
      queue.end(signal.reason instanceof Error ? signal.reason : new Error(String(signal.reason)));
      stream.end({ clientClosed: true });
    };
    try {
      if (signal.aborted) onAbort();
      else signal.addEventListener("abort", onAbort, { once: true });
      queue.feedFrom(stream);
      yield* read(queue);
    } finally {
      signal.removeEventListener("abort", onAbort);
      stream.end({ clientClosed: true }); // No effect once the guest has ended it.
    }
  } catch (error) {
    throw signal.aborted ? signal.reason : guestErrorOf(error);
  }
}
