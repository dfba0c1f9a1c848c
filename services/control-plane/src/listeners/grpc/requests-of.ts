import type { Readable } from "node:stream";
import type { Incoming } from "../../rpc/interceptors/call-pipeline.ts";

/** The requests of a client that streams. Reading ahead is bounded from this call on, also where nobody reads. */
export function requestsOf(call: Readable, signal: AbortSignal): AsyncIterable<Incoming> {
  readOneAhead(call);
  return read(call, signal);
}

/**
 * A call that is destroyed before the client's half-close ends with the client's end, never as if it were complete. Not by Node's own
 * iterator: it destroys a stream that emits an error, which is how grpc-js is given the status of a call that answers with a stream.
 */
async function* read(call: Readable, signal: AbortSignal): AsyncGenerator<Incoming> {
  let wake: (() => void) | undefined;
  const moved = (): void => wake?.();
  const events = ["readable", "end", "close"] as const;
  for (const event of events) call.on(event, moved);
  try {
    for (;;) {
      const incoming: Incoming | null = call.read();
      if (incoming !== null) yield incoming;
      else if (call.readableEnded) break;
      else if (call.destroyed) {
        signal.throwIfAborted();
        throw new Error("the call was ended before its requests were");
      } else {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }
  } finally {
    for (const event of events) call.off(event, moved);
  }
  signal.throwIfAborted();
}

/** Node reads 16 objects ahead, which are 16 messages of up to 4 MiB here, of each call. One is enough. (uploads.test.ts) */
function readOneAhead(call: Readable): void {
  const inside = (call as { _readableState?: { highWaterMark?: number } })._readableState;
  if (inside?.highWaterMark !== undefined) inside.highWaterMark = 1;
}
