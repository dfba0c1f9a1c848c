import { randomUUID } from "node:crypto";
import type * as grpc from "@grpc/grpc-js";
import { type CallContext, ClientEndedCall } from "../../rpc/call-context.ts";

/** A grpc-js call, as far as its context is concerned. */
type Call = Pick<grpc.ServerUnaryCall<unknown, unknown>, "metadata" | "cancelled" | "getPeer" | "getDeadline"> & {
  once(event: "cancelled", listener: () => void): unknown;
};

/**
 * The context of a grpc-js call, and the way to stop listening to it once it is answered.
 * @param forced aborts when the listener ends what is left by force, which is not the client's end
 */
export function contextOf(
  call: Call,
  forced: AbortSignal,
): { readonly context: CallContext; readonly answered: () => void } {
  const controller = new AbortController();
  let answered = false;
  // grpc-js emits it after every call, also a good one; before the answer it means the client's end or its deadline.
  call.once("cancelled", () => {
    if (!answered && !forced.aborted) controller.abort(new ClientEndedCall());
  });
  if (call.cancelled) controller.abort(new ClientEndedCall());
  const deadline = call.getDeadline();
  const context: CallContext = {
    signal: controller.signal,
    deadline: typeof deadline === "number" && !Number.isFinite(deadline) ? undefined : new Date(deadline),
    header(name) {
      const values = call.metadata.get(name).filter((value) => typeof value === "string");
      return values.length === 0 ? undefined : values.join(", ");
    },
    peer: call.getPeer(),
    requestId: randomUUID(),
  };
  return {
    context,
    answered() {
      answered = true;
    },
  };
}
