import type { Message } from "@bufbuild/protobuf";
import type * as grpc from "@grpc/grpc-js";
import { HoldfastError } from "@holdfast/errors";
import type { Incoming, ServedMethod } from "../../rpc/interceptors/call-pipeline.ts";
import { contextOf } from "./grpc-call-context.ts";
import { grpcStatusOf } from "./grpc-status.ts";
import { requestsOf } from "./requests-of.ts";

type ClientStreamingMethod = Extract<ServedMethod, { kind: "client_streaming" }>;

/** Serves a client-streaming method on grpc-js. An error is answered at once, whatever the client is still sending. */
export function serveClientStreaming(
  method: ClientStreamingMethod,
  forced: AbortSignal,
): grpc.handleClientStreamingCall<Incoming, Message> {
  return (call, respond) => {
    const { context, answered } = contextOf(call, forced);
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
