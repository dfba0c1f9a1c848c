import { randomUUID } from "node:crypto";
import type * as grpc from "@grpc/grpc-js";
import type { CallContext } from "../../rpc/call-context.ts";
import { clientEndOf } from "./client-end.ts";

/** A grpc-js call, as far as its context is concerned. */
type Call = Pick<grpc.ServerUnaryCall<unknown, unknown>, "metadata" | "getPeer" | "getDeadline">;

/** Why a call's signal aborts. */
export class ClientEndedCall extends Error {
  constructor() {
    super("the client cancelled, went away, or its deadline passed");
    this.name = "AbortError";
  }
}

/** The context of a grpc-js call, and the way to stop listening to it once it is answered. */
export function contextOf(call: Call): { readonly context: CallContext; readonly answered: () => void } {
  const controller = new AbortController();
  let answered = false;
  // grpc-js tells it after every call, also a good one; before the answer it means the client's end or its deadline.
  const onEnd = (): void => {
    if (!answered) controller.abort(new ClientEndedCall());
  };
  const clientEnd = clientEndOf(call.metadata);
  clientEnd.addEventListener("abort", onEnd, { once: true });
  if (clientEnd.aborted) onEnd();
  const deadline = call.getDeadline();
  const context: CallContext = {
    signal: controller.signal,
    deadline: typeof deadline === "number" && !Number.isFinite(deadline) ? undefined : new Date(deadline),
    header(name) {
      const value = call.metadata.get(name)[0];
      return typeof value === "string" ? value : undefined;
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
