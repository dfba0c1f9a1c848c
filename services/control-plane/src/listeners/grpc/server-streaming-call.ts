import type { Message } from "@bufbuild/protobuf";
import type * as grpc from "@grpc/grpc-js";
import { HoldfastError } from "@holdfast/errors";
import type { Incoming, ServedMethod } from "../../rpc/interceptors/call-pipeline.ts";
import { contextOf } from "./grpc-call-context.ts";
import { grpcStatusOf } from "./grpc-status.ts";

type ServerStreamingMethod = Extract<ServedMethod, { kind: "server_streaming" }>;
type Call = grpc.ServerWritableStream<Incoming, Message>;

/** Serves a server-streaming method on grpc-js: the next response is asked for only when there is room for it. */
export function serveServerStreaming(
  method: ServerStreamingMethod,
  forced: AbortSignal,
): grpc.handleServerStreamingCall<Incoming, Message> {
  return (call) => {
    const { context, answered } = contextOf(call, forced);
    pump(method, call, context).then(
      () => {
        answered();
        call.end();
      },
      (error: unknown) => {
        answered();
        // Anything else is ClientGone: grpc-js has destroyed the call already.
        if (error instanceof HoldfastError) call.emit("error", grpcStatusOf(error));
      },
    );
  };
}

async function pump(
  method: ServerStreamingMethod,
  call: Call,
  context: ReturnType<typeof contextOf>["context"],
): Promise<void> {
  for await (const response of method.serve(call.request, context)) {
    if (context.signal.aborted) return;
    if (!call.write(response)) await roomOrEnd(call, context.signal);
    if (context.signal.aborted) return;
  }
}

/** grpc-js's write() takes whatever it is given: what is not waited for is memory. A destroyed call never drains. */
function roomOrEnd(call: Call, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = (): void => {
      call.off("drain", done);
      signal.removeEventListener("abort", done);
      resolve();
    };
    call.once("drain", done);
    signal.addEventListener("abort", done, { once: true });
  });
}
