import type { DescMethod, Message } from "@bufbuild/protobuf";
import { ConnectError, type ConnectRouter, type HandlerContext, type MethodImpl } from "@connectrpc/connect";
import { HoldfastError } from "@holdfast/errors";
import type { Incoming, ServedMethod } from "../../rpc/interceptors/call-pipeline.ts";
import { LetGo } from "../../rpc/interceptors/let-go.ts";
import { connectErrorOf, reasonForRefusal } from "./connect-error.ts";
import { WebCall } from "./web-call.ts";

/** Mounts a served method on connect-node, for all of its protocols. */
export function mountMethod(router: ConnectRouter, method: ServedMethod): void {
  // Its types are erased in a ServedMethod; the descriptor is the one that the handler was bound to.
  router.rpc(method.descriptor, implementationOf(method) as unknown as MethodImpl<DescMethod>);
}

function implementationOf(method: ServedMethod) {
  switch (method.kind) {
    case "unary":
      return (request: Message, handler: HandlerContext) =>
        answer(handler, async (call) => {
          await call.assertMeant();
          return await method.serve(incomingOf(request, call), call.context);
        });
    case "client_streaming":
      return (requests: AsyncIterable<Message>, handler: HandlerContext) =>
        answer(handler, (call) => method.serve(requestsOf(requests, call), call.context));
    case "server_streaming":
      return (request: Message, handler: HandlerContext) =>
        respond(handler, (call) => method.serve(incomingOf(request, call), call.context));
    case "bidi_streaming":
      return (requests: AsyncIterable<Message>, handler: HandlerContext) =>
        respond(handler, (call) => method.serve(requestsOf(requests, call), call.context));
  }
}

/** One answer. At the client's end it is let go, as grpc-js does: its handler has heard of it by its signal. */
async function answer(handler: HandlerContext, serve: (call: WebCall) => Promise<Message>): Promise<Message> {
  const call = new WebCall(handler);
  const letGo = new LetGo(call.context.signal, () => call.clientsEnd());
  try {
    return await letGo.orLetGo(serve(call));
  } catch (thrown) {
    throw wireErrorOf(thrown, call);
  } finally {
    letGo.dispose();
    call.answered();
  }
}

/**
 * A stream of responses, each asked for when connect-node has room for it. connect-node never comes back for one whose client went away
 * while it waited for room, so the stream is ended by the call's signal; the `finally` here is for every other end.
 */
async function* respond(
  handler: HandlerContext,
  serve: (call: WebCall) => AsyncIterable<Message>,
): AsyncGenerator<Message> {
  const call = new WebCall(handler);
  const { signal } = call.context;
  const letGo = new LetGo(signal, () => call.clientsEnd());
  try {
    const source = serve(call)[Symbol.asyncIterator]();
    // It fails by what its handler fails with, which the pipeline has logged.
    signal.addEventListener("abort", () => void source.return?.().catch(() => undefined), { once: true });
    for (;;) {
      const next = await letGo.orLetGo(source.next());
      if (next.done) return;
      yield next.value;
    }
  } catch (thrown) {
    throw wireErrorOf(thrown, call);
  } finally {
    letGo.dispose();
    call.answered();
  }
}

/** The requests of a client that streams, to its own half-close. */
async function* requestsOf(requests: AsyncIterable<Message>, call: WebCall): AsyncGenerator<Incoming> {
  if (call.unreadable !== undefined) {
    yield { unreadable: call.unreadable };
    return;
  }
  try {
    for await (const message of requests) yield { message };
  } catch (error) {
    const unreadable = error instanceof ConnectError ? reasonForRefusal(error) : undefined;
    call.assertNotCut();
    if (unreadable === undefined) throw error;
    yield { unreadable };
    return;
  }
  await call.assertWhole();
}

/** Half a request may be a message too: it is not one that the client has sent. */
function incomingOf(message: Message, call: WebCall): Incoming {
  call.assertNotCut();
  const { unreadable } = call;
  return unreadable === undefined ? { message } : { unreadable };
}

/** Anything but a HoldfastError is the client's end. */
function wireErrorOf(thrown: unknown, call: WebCall): ConnectError {
  return thrown instanceof HoldfastError ? connectErrorOf(thrown) : call.clientsEnd();
}
