import type { DescMethod } from "@bufbuild/protobuf";
import { ConnectError, createContextValues } from "@connectrpc/connect";
import { createAsyncIterable, type UniversalServerRequest } from "@connectrpc/connect/protocol";
import { HoldfastError } from "@holdfast/errors";
import { reasonForRefusal } from "./connect-error.ts";
import { type RequestFacts, requestFacts } from "./web-call.ts";

/** Why connect-node refused a request before any handler of ours was asked; undefined when it did not. */
export function refusalOf({ reached, seen, arrival }: RequestFacts): HoldfastError | undefined {
  if (reached || !seen?.aborted || arrival() === "cut") return undefined;
  return seen.reason instanceof ConnectError ? reasonForRefusal(seen.reason) : undefined;
}

/** Why a call cannot be carried by the request's version of HTTP; undefined when it can. connect-node would say 505 and no reason. */
export function versionRefusalOf(request: UniversalServerRequest, method: DescMethod): HoldfastError | undefined {
  const carried = method.methodKind !== "bidi_streaming" || !request.httpVersion.startsWith("1.");
  if (carried || request.method !== "POST") return undefined;
  return new HoldfastError("STREAM_NEEDS_HTTP2", {
    message: `The call was not carried out: ${method.name} streams both ways, which HTTP/1.1 cannot carry. Use HTTP/2; from a browser, calls that stream one way.`,
    metadata: { http_version: request.httpVersion },
  });
}

/**
 * The same request with an empty message in the place of the one that could not be read: it passes the pipeline as unreadable, so that
 * its answer has a reason and a line in the log, in the client's own protocol.
 */
export function asUnreadable(
  request: UniversalServerRequest,
  facts: RequestFacts,
  unreadable: HoldfastError,
): UniversalServerRequest {
  const header = new Headers(request.header);
  for (const name of ["connect-timeout-ms", "grpc-timeout", "content-length"]) header.delete(name);
  const type = header.get("content-type") ?? "";
  const message = Buffer.from(/json/.test(type) ? "{}" : "");
  const prefix = Buffer.from([0, 0, 0, 0, message.length]);
  const body = /^application\/(?:grpc|connect\+)/.test(type) ? Buffer.concat([prefix, message]) : message;
  const { peer, forced, afterReset } = facts;
  return {
    ...request,
    httpVersion: "2.0", // Whichever it is, this much of a call can be served over it.
    method: "POST",
    header,
    body: createAsyncIterable([body]),
    contextValues: createContextValues().set(requestFacts, {
      peer,
      forced,
      unreadable,
      arrival: () => "whole",
      tellsItsEnd: true,
      afterReset,
    }),
  };
}
