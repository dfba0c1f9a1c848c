import type { Readable } from "node:stream";
import type { Incoming } from "../../rpc/interceptors/call-pipeline.ts";

/** The requests of a client that streams. Reading ahead is bounded from this call on, also where nobody reads. */
export function requestsOf(call: Readable, signal: AbortSignal): AsyncIterable<Incoming> {
  readOneAhead(call);
  return read(call, signal);
}

/** A call that is destroyed before the client's half-close ends with the client's end, never as if it were complete. */
async function* read(call: Readable, signal: AbortSignal): AsyncGenerator<Incoming> {
  try {
    yield* call.iterator({ destroyOnReturn: false }) as AsyncIterable<Incoming>;
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
  signal.throwIfAborted();
}

/** Node reads 16 objects ahead, which are 16 messages of up to 4 MiB here, of each call. One is enough. (uploads.test.ts) */
function readOneAhead(call: Readable): void {
  const inside = (call as { _readableState?: { highWaterMark?: number } })._readableState;
  if (inside?.highWaterMark !== undefined) inside.highWaterMark = 1;
}
