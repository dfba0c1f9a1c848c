import type { Message } from "@bufbuild/protobuf";
import type { HoldfastError } from "@holdfast/errors";
import type { CallContext } from "../call-context.ts";
import type { MountedMethod } from "../service-implementation.ts";
import type { Admission } from "./admission.ts";
import type { CallLog } from "./call-log.ts";
import { PipelineCall } from "./pipeline-call.ts";
import { RequestStream } from "./request-stream.ts";

/** What a listener hands over: a request, or why there is none. */
export type Incoming = { readonly message: Message } | { readonly unreadable: HoldfastError };

/** An RPC as listeners serve it: it throws HoldfastErrors that are ready for the wire, or ClientGone. */
export type ServedMethod =
  | {
      readonly kind: "unary";
      readonly descriptor: MountedMethod["descriptor"];
      readonly serve: (incoming: Incoming, context: CallContext) => Promise<Message>;
    }
  | {
      readonly kind: "server_streaming";
      readonly descriptor: MountedMethod["descriptor"];
      readonly serve: (incoming: Incoming, context: CallContext) => AsyncIterable<Message>;
    }
  | {
      readonly kind: "client_streaming";
      readonly descriptor: MountedMethod["descriptor"];
      /**
       * `incoming` yields requests as they are pulled, so that what is not pulled holds the client back; it ends at the client's own
       * half-close and at nothing else, and throws the reason of the context's signal when the client goes away before.
       */
      readonly serve: (incoming: AsyncIterable<Incoming>, context: CallContext) => Promise<Message>;
    }
  | {
      readonly kind: "bidi_streaming";
      readonly descriptor: MountedMethod["descriptor"];
      /** `incoming` as of a client stream. */
      readonly serve: (incoming: AsyncIterable<Incoming>, context: CallContext) => AsyncIterable<Message>;
    };

export interface PipelineDeps {
  readonly admission: Admission;
  readonly log: CallLog;
}

/**
 * Puts a method behind what every call passes, in this order: admission (nothing is looked at while draining), validation, fields
 * not served, the handler; around it the drain, the error's mapping and one line of log.
 */
export function throughPipeline(method: MountedMethod, deps: PipelineDeps): ServedMethod {
  switch (method.kind) {
    case "unary":
      return unary(method, deps);
    case "server_streaming":
      return serverStreaming(method, deps);
    case "client_streaming":
      return clientStreaming(method, deps);
    case "bidi_streaming":
      return bidiStreaming(method, deps);
  }
}

type OfKind<Kind extends MountedMethod["kind"]> = Extract<MountedMethod, { kind: Kind }>;

function unary(method: OfKind<"unary">, deps: PipelineDeps): ServedMethod {
  const { descriptor, handle } = method;
  return {
    kind: "unary",
    descriptor,
    async serve(incoming, context) {
      const call = new PipelineCall(method, context, deps);
      try {
        const request = call.admit(incoming);
        const response = await call.letGo.orLetGo(handle(request, call.handlerContext));
        call.end(undefined);
        return response;
      } catch (thrown) {
        throw call.end(thrown);
      }
    },
  };
}

function serverStreaming(method: OfKind<"server_streaming">, deps: PipelineDeps): ServedMethod {
  const { descriptor, handle } = method;
  return {
    kind: "server_streaming",
    descriptor,
    async *serve(incoming, context) {
      const call = new PipelineCall(method, context, deps);
      yield* responses(call, deps.log, () => handle(call.admit(incoming), call.handlerContext));
    },
  };
}

function clientStreaming(method: OfKind<"client_streaming">, deps: PipelineDeps): ServedMethod {
  const { descriptor, handle } = method;
  return {
    kind: "client_streaming",
    descriptor,
    async serve(incoming, context) {
      const call = new PipelineCall(method, context, deps);
      using requests = new RequestStream(incoming, call, deps.admission.endOf(method.kind));
      try {
        call.enter();
        const response = await call.letGo.orLetGo(handle(requests, call.handlerContext));
        call.end(undefined);
        return response;
      } catch (thrown) {
        // What was wrong with the requests is what the caller must hear, whatever the handler made of it.
        throw call.end(requests.refusal ?? thrown);
      }
    },
  };
}

function bidiStreaming(method: OfKind<"bidi_streaming">, deps: PipelineDeps): ServedMethod {
  const { descriptor, handle } = method;
  return {
    kind: "bidi_streaming",
    descriptor,
    async *serve(incoming, context) {
      const call = new PipelineCall(method, context, deps);
      using requests = new RequestStream(incoming, call, deps.admission.endOf(method.kind));
      const begin = (): AsyncIterable<Message> => {
        call.enter();
        return handle(requests, call.handlerContext);
      };
      yield* responses(call, deps.log, begin, requests);
    },
  };
}

/**
 * The responses of a handler, as the listener asks for them, to the call's end: its own, the drain's, or the client's.
 * @param requests where they stream too: what was wrong with them is what the caller must hear, whatever the handler made of it
 */
async function* responses(
  call: PipelineCall,
  log: CallLog,
  begin: () => AsyncIterable<Message>,
  requests?: Pick<RequestStream, "refusal">,
): AsyncGenerator<Message, void> {
  let source: AsyncIterator<Message> | undefined;
  let done = false;
  try {
    source = begin()[Symbol.asyncIterator]();
    for (;;) {
      const next = await call.letGo.orLetGo(source.next());
      if (next.done) break;
      yield next.value;
    }
    done = true;
    call.end(undefined);
  } catch (thrown) {
    done = true;
    throw call.end(requests?.refusal ?? thrown);
  } finally {
    // The listener stopped reading: the client went away. A source that was let go is left alone.
    if (!done) {
      call.end(undefined);
      source?.return?.().catch((error: unknown) => log.failedCleanUp(call.subject, error));
    }
  }
}
