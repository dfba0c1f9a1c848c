import type { Message } from "@bufbuild/protobuf";
import { HoldfastError } from "@holdfast/errors";
import { grpcStatusOf } from "./grpc-status.ts";

/** A grpc-js call that answers with a stream. */
interface Call {
  write(response: Message): boolean;
  end(): unknown;
  emit(event: "error", status: ReturnType<typeof grpcStatusOf>): boolean;
  once(event: "drain", listener: () => void): unknown;
  off(event: "drain", listener: () => void): unknown;
}

/** Sends a stream of responses to its end: the next one is asked for only when there is room for it. */
export function sendResponses(
  responses: AsyncIterable<Message>,
  call: Call,
  signal: AbortSignal,
  answered: () => void,
): void {
  pump(responses, call, signal).then(
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
}

async function pump(responses: AsyncIterable<Message>, call: Call, signal: AbortSignal): Promise<void> {
  for await (const response of responses) {
    if (signal.aborted) return;
    if (!call.write(response)) await roomOrEnd(call, signal);
    if (signal.aborted) return;
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
