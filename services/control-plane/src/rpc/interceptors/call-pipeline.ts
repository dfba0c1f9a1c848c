import type { Message } from "@bufbuild/protobuf";
import type { HoldfastError } from "@holdfast/errors";
import type { CallContext, HandlerContext } from "../call-context.ts";
import type { MountedMethod } from "../service-implementation.ts";
import { type Admission, drainingError } from "./admission.ts";
import type { CallLog } from "./call-log.ts";
import { type CallSubject, callerErrorOf, workspaceIdOfRequest } from "./error-mapping.ts";
import { assertFieldsServed } from "./fields-not-served.ts";
import { LetGo } from "./let-go.ts";
import { assertValid } from "./request-validation.ts";

/** What a listener hands over: a request, or why there is none. */
export type Incoming = { readonly message: Message } | { readonly unreadable: HoldfastError };

/** The client ended the call; nobody is left to answer to. */
export class ClientGone extends Error {
  constructor() {
    super("the client ended the call");
    this.name = "ClientGone";
  }
}

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
  const { descriptor } = method;
  if (method.kind === "unary") {
    const { handle } = method;
    return {
      kind: "unary",
      descriptor,
      async serve(incoming, context) {
        const call = new PipelineCall(method, incoming, context, deps);
        try {
          const request = call.admit();
          const response = await call.letGo.orLetGo(handle(request, call.handlerContext));
          call.end(undefined);
          return response;
        } catch (thrown) {
          throw call.end(thrown);
        }
      },
    };
  }
  const { handle } = method;
  return {
    kind: "server_streaming",
    descriptor,
    async *serve(incoming, context) {
      const call = new PipelineCall(method, incoming, context, deps);
      let source: AsyncIterator<Message> | undefined;
      let done = false;
      try {
        const request = call.admit();
        source = handle(request, call.handlerContext)[Symbol.asyncIterator]();
        for (;;) {
          const next = await call.letGo.orLetGo(source.next());
          if (next.done) break;
          yield next.value;
        }
        done = true;
        call.end(undefined);
      } catch (thrown) {
        done = true;
        throw call.end(thrown);
      } finally {
        // The listener stopped reading: the client went away. A source that was let go is left alone.
        if (!done) {
          call.end(undefined);
          source?.return?.().catch((error: unknown) => deps.log.failedCleanUp(call.subject, error));
        }
      }
    },
  };
}

/** One call on its way through. */
class PipelineCall {
  readonly subject: CallSubject;
  readonly letGo: LetGo;
  readonly handlerContext: HandlerContext;
  readonly #method: MountedMethod;
  readonly #incoming: Incoming;
  readonly #context: CallContext;
  readonly #deps: PipelineDeps;
  readonly #startedMs = performance.now();
  #leave: (() => void) | undefined;
  #drainError: (() => HoldfastError) | undefined;
  #ended = false;

  constructor(method: MountedMethod, incoming: Incoming, context: CallContext, deps: PipelineDeps) {
    this.#method = method;
    this.#incoming = incoming;
    this.#context = context;
    this.#deps = deps;
    this.subject = {
      operation: method.descriptor.name,
      requestId: context.requestId,
      workspaceId: "message" in incoming ? workspaceIdOfRequest(incoming.message) : undefined,
    };
    this.letGo = new LetGo(deps.admission.endOf(method.kind), () => this.#errorOfDrain());
    this.handlerContext = Object.assign(Object.create(context), {
      endsInDrainWith: (describe: () => HoldfastError) => {
        this.#drainError = describe;
      },
    });
  }

  /** Throws unless the call may go to its handler. */
  admit(): Message {
    // A client may have cancelled before its request was read: then nobody wants it done.
    if (this.#context.signal.aborted) throw this.#context.signal.reason;
    this.#leave = this.#deps.admission.enter();
    if ("unreadable" in this.#incoming) throw this.#incoming.unreadable;
    const { message } = this.#incoming;
    assertValid(this.#method.descriptor.input, message);
    assertFieldsServed(this.#method.descriptor.input, message, this.#context);
    return message;
  }

  /** Ends the call's books, once, and returns the error for the wire. */
  end(thrown: unknown): HoldfastError | ClientGone | undefined {
    if (this.#isClientsEnd(thrown)) {
      this.end(undefined);
      return new ClientGone();
    }
    const error = thrown === undefined ? undefined : callerErrorOf(thrown, this.subject);
    if (this.#ended) return error;
    this.#ended = true;
    this.letGo.dispose();
    this.#leave?.();
    this.#deps.log.ended(this.subject, this.#context, performance.now() - this.#startedMs, error);
    return error;
  }

  #isClientsEnd(thrown: unknown): boolean {
    const { signal } = this.#context;
    return signal.aborted && (thrown === signal.reason || (thrown instanceof Error && thrown.name === "AbortError"));
  }

  #errorOfDrain(): HoldfastError {
    return this.#drainError?.() ?? drainingError("The call was let go before its outcome was known");
  }
}
