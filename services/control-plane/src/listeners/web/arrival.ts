import type { Http2Session } from "node:http2";
import type { WebRequest } from "./exchange.ts";

/**
 * How much of a request there is: `whole` once its client has ended it itself, `cut` once nothing more can come. Node ends the body of
 * a request whose stream was reset, or whose connection was cut, as if it were whole.
 */
export type Arrival = "coming" | "whole" | "cut";

export function arrivalOf(request: WebRequest): Arrival {
  if (!("stream" in request)) {
    if (request.complete) return "whole";
    return request.destroyed ? "cut" : "coming";
  }
  const { stream } = request;
  if (stream.closed || stream.destroyed || stream.aborted) return "cut";
  return stream.state.remoteClose === 1 ? "whole" : "coming";
}

/**
 * False where a first part of the request may pass for a whole one: a bare message in protobuf is one wherever it is cut between two
 * fields. JSON, envelopes, a length and HTTP/1.1 tell their own end.
 */
export function tellsItsEnd(request: WebRequest): boolean {
  const { "content-length": length, "content-type": type } = request.headers;
  return !("stream" in request) || length !== undefined || !/^application\/proto\b/i.test(type ?? "");
}

/**
 * Resolves once a reset that the client sent together with its half-close must have arrived. Node's clients of HTTP/2 send one just
 * before a reset: a program that gives up half of an upload says "this was all" and takes it back. The answer to a ping may overtake
 * the reset in the client's queue; the answer to a second one cannot.
 */
export async function afterReset(request: WebRequest): Promise<void> {
  const session = "stream" in request ? request.stream.session : undefined;
  for (let pings = 0; pings < 2 && session?.destroyed === false; pings += 1) await answerToPing(session);
}

function answerToPing(session: Http2Session): Promise<void> {
  return new Promise((resolve) => {
    const sent = session.ping(() => resolve());
    // Closing: whether its streams were cut can be seen by now.
    if (!sent) resolve();
  });
}
