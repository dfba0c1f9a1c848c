import type { ServerHttp2Stream } from "node:http2";

/**
 * Closes a stream at once when its client resets it. Node closes it only once it has been read to its end: a cancel would be heard when
 * the handler reads on, which one that is held back never does. Called when a stream begins; the reset may have come with it.
 */
export function endAtReset(stream: ServerHttp2Stream): void {
  if (stream.aborted) stream.destroy();
  else stream.once("aborted", () => stream.destroy());
}
