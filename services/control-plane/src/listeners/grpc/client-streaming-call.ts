import type { Message } from "@bufbuild/protobuf";
import type * as grpc from "@grpc/grpc-js";
import { HoldfastError } from "@holdfast/errors";
import type { Incoming, ServedMethod } from "../../rpc/interceptors/call-pipeline.ts";
import { contextOf } from "./grpc-call-context.ts";
import { grpcStatusOf } from "./grpc-status.ts";

type ClientStreamingMethod = Extract<ServedMethod, { kind: "client_streaming" }>;
type Call = grpc.ServerReadableStream<Incoming, Message>;

/** Serves a client-streaming method on grpc-js. An error is answered at once, whatever the client is still sending. */
export function serveClientStreaming(
  method: ClientStreamingMethod,
  forced: AbortSignal,
): grpc.handleClientStreamingCall<Incoming, Message> {
  return (call, respond) => {
    const { context, answered } = contextOf(call, forced);
    readOneAhead(call);
    method.serve(requestsOf(call, context.signal), context).then(
      (response) => {
        answered();
        respond(null, response);
      },
      (error: unknown) => {
        answered();
        // Anything else is ClientGone: grpc-js has ended the call already, and ignores what is sent to it.
        if (error instanceof HoldfastError) respond(grpcStatusOf(error));
      },
    );
  };
}

/** A call that is destroyed before the client's half-close ends with the client's end, never as if it were complete. */
async function* requestsOf(call: Call, signal: AbortSignal): AsyncGenerator<Incoming> {
  try {
    yield* call.iterator({ destroyOnReturn: false });
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
  signal.throwIfAborted();
}

/** Node reads 16 objects ahead, which are 16 messages of up to 4 MiB here, of each call. One is enough. (uploads.test.ts) */
function readOneAhead(call: Call): void {
  const inside = (call as { _readableState?: { highWaterMark?: number } })._readableState;
  if (inside?.highWaterMark !== undefined) inside.highWaterMark = 1;
}
