import type { Message } from "@bufbuild/protobuf";
import type * as grpc from "@grpc/grpc-js";
import { HoldfastError } from "@holdfast/errors";
import type { Incoming, ServedMethod } from "../../rpc/interceptors/call-pipeline.ts";
import { contextOf } from "./grpc-call-context.ts";
import { grpcStatusOf } from "./grpc-status.ts";

type UnaryMethod = Extract<ServedMethod, { kind: "unary" }>;

/** Serves a unary method on grpc-js. */
export function serveUnary(method: UnaryMethod, forced: AbortSignal): grpc.handleUnaryCall<Incoming, Message> {
  return (call, respond) => {
    const { context, answered } = contextOf(call, forced);
    method.serve(call.request, context).then(
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
