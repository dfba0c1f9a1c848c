import { randomUUID } from "node:crypto";
import { ConnectError, createContextKey, type HandlerContext } from "@connectrpc/connect";
import type { HoldfastError } from "@holdfast/errors";
import { type CallContext, ClientEndedCall } from "../../rpc/call-context.ts";
import type { Arrival } from "./arrival.ts";

/** What the listener knows of a request that connect-node does not. */
export interface RequestFacts {
  readonly peer: string;
  /** Aborts when the listener ends connections by force: what closes after that is not the client's end. */
  readonly forced: AbortSignal;
  /** How much of the request there is. */
  readonly arrival: () => Arrival;
  /** Whether a first part of the request can be told from the whole. */
  readonly tellsItsEnd: boolean;
  /** Resolves once it can be told whether a half-close was meant. */
  readonly afterReset: () => Promise<void>;
  /** Why there is no message, when connect-node could not read one. */
  readonly unreadable: HoldfastError | undefined;
  /** Of the call as connect-node sees it; set as soon as it does. */
  seen?: AbortSignal;
  /** True once a handler of ours was asked. */
  reached?: boolean;
}

/** By which a handler finds the facts of its request. */
export const requestFacts = createContextKey<RequestFacts | undefined>(undefined);

/** A call as connect-node hands it over. */
export class WebCall {
  readonly context: CallContext;
  readonly unreadable: HoldfastError | undefined;
  readonly #handler: HandlerContext;
  readonly #ended = new AbortController();
  readonly #facts: RequestFacts;
  readonly #onEnd = (): void => {
    if (!this.#facts.forced.aborted) this.#ended.abort(new ClientEndedCall());
  };

  constructor(handler: HandlerContext) {
    const facts = handler.values.get(requestFacts);
    if (!facts) throw new Error("a call without the facts of its request");
    facts.reached = true;
    this.#handler = handler;
    this.#facts = facts;
    this.unreadable = facts.unreadable;
    const timeoutMs = handler.timeoutMs();
    this.context = {
      signal: this.#ended.signal,
      deadline: timeoutMs === undefined ? undefined : new Date(Date.now() + timeoutMs),
      header: (name) => (name.endsWith("-bin") ? undefined : (handler.requestHeader.get(name) ?? undefined)),
      peer: facts.peer,
      requestId: randomUUID(),
    };
    // It also aborts after every good answer: whoever answers says so first.
    handler.signal.addEventListener("abort", this.#onEnd, { once: true });
    if (handler.signal.aborted) this.#onEnd();
  }

  /** Resolves when the client has sent all of its request and meant it; rejects with the client's end when it did not. */
  async assertWhole(): Promise<void> {
    await this.#facts.afterReset();
    if (this.#facts.arrival() !== "whole") this.#ended.abort(new ClientEndedCall());
    this.context.signal.throwIfAborted();
  }

  /** As `assertWhole`, of a request of one message, which is at hand. Waits only where a part of it could pass for it. */
  async assertMeant(): Promise<void> {
    if (!this.#facts.tellsItsEnd) await this.assertWhole();
  }

  /** Throws the client's end if nothing more can come. */
  assertNotCut(): void {
    if (this.#facts.arrival() === "cut") this.#ended.abort(new ClientEndedCall());
    this.context.signal.throwIfAborted();
  }

  /** What a client that still listens hears of its own end: that its deadline passed. */
  clientsEnd(): ConnectError {
    return ConnectError.from(this.#handler.signal.reason);
  }

  /** The call is over on our side: what ends now is no longer the client's end. */
  answered(): void {
    this.#handler.signal.removeEventListener("abort", this.#onEnd);
  }
}
