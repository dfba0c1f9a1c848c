import type { Message } from "@bufbuild/protobuf";
import type * as grpc from "@grpc/grpc-js";
import type { Incoming, ServedMethod } from "../../rpc/interceptors/call-pipeline.ts";
import { contextOf } from "./grpc-call-context.ts";
import { sendResponses } from "./send-responses.ts";

type ServerStreamingMethod = Extract<ServedMethod, { kind: "server_streaming" }>;

/** Serves a server-streaming method on grpc-js. */
export function serveServerStreaming(
  method: ServerStreamingMethod,
  forced: AbortSignal,
): grpc.handleServerStreamingCall<Incoming, Message> {
  return (call) => {
    const { context, answered } = contextOf(call, forced);
    sendResponses(method.serve(call.request, context), call, context.signal, answered);
  };
}
