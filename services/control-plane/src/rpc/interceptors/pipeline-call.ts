import type { Message } from "@bufbuild/protobuf";
import type { HoldfastError } from "@holdfast/errors";
import type { CallContext, HandlerContext } from "../call-context.ts";
import { epochOfMetadata } from "../parse-fencing.ts";
import type { MountedMethod } from "../service-implementation.ts";
import { drainingError } from "./admission.ts";
import type { Incoming, PipelineDeps } from "./call-pipeline.ts";
import { type CallSubject, callerErrorOf, workspaceIdOfRequest } from "./error-mapping.ts";
import { assertFieldsServed } from "./fields-not-served.ts";
import { LetGo } from "./let-go.ts";
import { assertValid } from "./request-validation.ts";

/** The client ended the call; nobody is left to answer to. */
export class ClientGone extends Error {
  constructor() {
    super("the client ended the call");
    this.name = "ClientGone";
  }
}

/** One call on its way through the pipeline: its place, its subject, its end. */
export class PipelineCall {
  readonly letGo: LetGo;
  readonly handlerContext: HandlerContext;
  readonly #method: MountedMethod;
  readonly #context: CallContext;
  readonly #deps: PipelineDeps;
  readonly #startedMs = performance.now();
  /** Of the first request that names one. */
  #workspaceId: string | undefined;
  #leave: (() => void) | undefined;
  #drainError: (() => HoldfastError) | undefined;
  #ended = false;

  constructor(method: MountedMethod, context: CallContext, deps: PipelineDeps) {
    this.#method = method;
    this.#context = context;
    this.#deps = deps;
    this.letGo = new LetGo(deps.admission.endOf(method.kind), () => this.#errorOfDrain());
    this.handlerContext = Object.assign(Object.create(context), {
      endsInDrainWith: (describe: () => HoldfastError) => {
        this.#drainError = describe;
      },
    });
  }

  get subject(): CallSubject {
    return {
      operation: this.#method.descriptor.name,
      requestId: this.#context.requestId,
      workspaceId: this.#workspaceId,
    };
  }

  /** Takes a call's place and its only request; throws unless it may go to its handler. */
  admit(incoming: Incoming): Message {
    this.#note(incoming);
    this.enter();
    return this.take(incoming);
  }

  /** Takes a place; throws while draining, and when there is none. */
  enter(): void {
    // A client may have cancelled before its request was read: then nobody wants it done.
    if (this.#context.signal.aborted) throw this.#context.signal.reason;
    this.#leave = this.#deps.admission.enter(this.#method.kind);
  }

  /** A request as its handler may see it; throws what is wrong with it. */
  take(incoming: Incoming): Message {
    this.#note(incoming);
    if ("unreadable" in incoming) throw incoming.unreadable;
    const { message } = incoming;
    assertValid(this.#method.descriptor.input, message);
    assertFieldsServed(this.#method.descriptor.input, message);
    epochOfMetadata(this.#context); // Also of a call that has no use for it: what is wrong is said, not ignored.
    return message;
  }

  /** Ends the call's books, once, and returns the error for the wire. */
  end(thrown: unknown): HoldfastError | ClientGone | undefined {
    if (this.#isClientsEnd(thrown)) {
      this.end(undefined);
      return new ClientGone();
    }
    const { subject } = this;
    const error = thrown === undefined ? undefined : callerErrorOf(thrown, subject);
    if (this.#ended) return error;
    this.#ended = true;
    this.letGo.dispose();
    this.#leave?.();
    this.#deps.log.ended(subject, this.#context, performance.now() - this.#startedMs, error);
    return error;
  }

  #note(incoming: Incoming): void {
    if ("message" in incoming) {
      this.#workspaceId ??= workspaceIdOfRequest(this.#method.descriptor.input, incoming.message);
    }
  }

  #isClientsEnd(thrown: unknown): boolean {
    const { signal } = this.#context;
    return signal.aborted && (thrown === signal.reason || (thrown instanceof Error && thrown.name === "AbortError"));
  }

  #errorOfDrain(): HoldfastError {
    return this.#drainError?.() ?? drainingError("The call was let go before its outcome was known");
  }
}
