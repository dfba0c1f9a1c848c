import type { Message } from "@bufbuild/protobuf";
import { drainingError } from "./admission.ts";
import type { Incoming } from "./call-pipeline.ts";
import { LetGo } from "./let-go.ts";
import type { PipelineCall } from "./pipeline-call.ts";

/** How a stream of requests ended. Only the client's half-close is an end; everything else is thrown, also when it is pulled again. */
type End = { readonly t: "half_closed" } | { readonly t: "failed"; readonly thrown: unknown };

/**
 * The requests of one client stream as its handler pulls them, once: each is checked before it is seen. What ends it otherwise than by
 * the client's half-close is thrown: a request that is refused, the client's going away, a drain, the end of the call itself.
 */
export class RequestStream implements AsyncIterable<Message>, Disposable {
  readonly #source: AsyncIterator<Incoming>;
  readonly #call: PipelineCall;
  readonly #letGo: LetGo;
  #end: End | undefined;
  #refused: { readonly thrown: unknown } | undefined;

  constructor(incoming: AsyncIterable<Incoming>, call: PipelineCall, drained: AbortSignal) {
    this.#source = incoming[Symbol.asyncIterator]();
    this.#call = call;
    this.#letGo = new LetGo(drained, () => drainingError("What the client was still sending was not taken"));
  }

  /** What was wrong on the client's side: a request that was refused, or its going away. */
  get refusal(): unknown {
    return this.#refused?.thrown;
  }

  [Symbol.asyncIterator](): AsyncIterator<Message> {
    return {
      next: () => this.#next(),
      return: async () => {
        this[Symbol.dispose]();
        return { done: true, value: undefined };
      },
    };
  }

  /** The call is over: a handler that still pulls must not take that for the client's half-close. */
  [Symbol.dispose](): void {
    this.#end ??= { t: "failed", thrown: new Error("the call is over") };
    this.#letGo.dispose();
  }

  async #next(): Promise<IteratorResult<Message>> {
    if (this.#end?.t === "failed") throw this.#end.thrown;
    if (this.#end?.t === "half_closed") return { done: true, value: undefined };
    try {
      const pulled = await this.#letGo.orLetGo(this.#pull());
      if (pulled.done) this.#end = { t: "half_closed" };
      return pulled;
    } catch (thrown) {
      this.#end ??= { t: "failed", thrown };
      throw thrown;
    }
  }

  async #pull(): Promise<IteratorResult<Message>> {
    try {
      const next = await this.#source.next();
      return next.done ? { done: true, value: undefined } : { done: false, value: this.#call.take(next.value) };
    } catch (thrown) {
      this.#refused ??= { thrown };
      throw thrown;
    }
  }
}
