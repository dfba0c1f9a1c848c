import type { Http2Stream } from "node:http2";
import * as grpc from "@grpc/grpc-js";
import { HoldfastError } from "@holdfast/errors";
import { grpcStatusOf } from "./grpc-status.ts";
import { afterRoundTrip } from "./round-trip.ts";

/**
 * Lets a client stream end only as its client ended it: whole. A client in Node cancels by an end and then a reset, and grpc-js drops a
 * message that was begun and not finished: both would pass for the end of the content. What grpc-js knows is private; where it is not as
 * expected no client stream ends well. (uploads.test.ts)
 */
export const wholeUploads: grpc.ServerInterceptor = (method, call) => {
  if (!method.requestStream) return new grpc.ServerInterceptingCall(call);
  const inside = call as unknown as GrpcCallInside;
  return new grpc.ServerInterceptingCall(call, {
    start: (start) =>
      start({
        onReceiveHalfClose(halfClose) {
          const { stream, decoder } = inside;
          if (!stream?.session) return; // It is over: its cancellation follows.
          // Node's own clients cancel by an end and then a reset. A round trip later the reset is here, and is told as a cancellation.
          afterRoundTrip(stream.session, () => {
            if (stream.aborted !== false || stream.destroyed) return;
            if (decoder?.readState === betweenMessages) halfClose();
            else call.sendStatus(endedWithin(method.path));
          });
        },
      }),
  });
};

interface GrpcCallInside {
  readonly stream?: Partial<Http2Stream>;
  readonly decoder?: { readonly readState?: unknown };
}

/** grpc-js's NO_DATA. */
const betweenMessages = 0;

function endedWithin(path: string): grpc.StatusObject {
  return grpcStatusOf(
    new HoldfastError("INVALID_REQUEST", {
      message: "The call was not carried out: the client ended it within a message, so what it sent is not whole.",
      metadata: { operation: path.slice(path.lastIndexOf("/") + 1) },
    }),
  );
}
