import * as grpc from "@grpc/grpc-js";
import { requestMaxBytes } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import { grpcStatusOf } from "./grpc-status.ts";

/** Gives the refusals that grpc-js makes before any handler runs their reason: a request that is too large. */
export function reasonForNativeStatus(path: string, call: grpc.ServerInterceptingCallInterface): void {
  const send = call.sendStatus.bind(call);
  call.sendStatus = (status) => send(isTooLarge(status) ? tooLarge(path) : status);
}

type SentStatus = Parameters<grpc.ServerInterceptingCallInterface["sendStatus"]>[0];

function isTooLarge({ code, metadata }: SentStatus): boolean {
  return code === grpc.status.RESOURCE_EXHAUSTED && (metadata === undefined || metadata === null);
}

function tooLarge(path: string): grpc.StatusObject {
  return grpcStatusOf(
    new HoldfastError("MESSAGE_TOO_LARGE", {
      message: `The call was not carried out: its request is larger than ${requestMaxBytes} bytes. Send less in one call.`,
      metadata: { operation: path.slice(path.lastIndexOf("/") + 1), limit: String(requestMaxBytes) },
    }),
  );
}
