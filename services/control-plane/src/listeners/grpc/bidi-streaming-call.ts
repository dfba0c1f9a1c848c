import type { Message } from "@bufbuild/protobuf";
import type * as grpc from "@grpc/grpc-js";
import type { Incoming, ServedMethod } from "../../rpc/interceptors/call-pipeline.ts";
import { contextOf } from "./grpc-call-context.ts";
import { requestsOf } from "./requests-of.ts";
import { sendResponses } from "./send-responses.ts";

type BidiStreamingMethod = Extract<ServedMethod, { kind: "bidi_streaming" }>;

/** Serves a method that streams both ways on grpc-js. It ends with its responses, whatever the client is still sending. */
export function serveBidiStreaming(
  method: BidiStreamingMethod,
  forced: AbortSignal,
): grpc.handleBidiStreamingCall<Incoming, Message> {
  return (call) => {
    const { context, answered } = contextOf(call, forced);
    const requests = requestsOf(call, context.signal);
    sendResponses(method.serve(requests, context), call, context.signal, answered);
  };
}
