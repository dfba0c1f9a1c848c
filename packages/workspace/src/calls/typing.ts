import { backoffMs, type Clock, pause } from "@holdfast/async";
import { inputAheadMax, refusedInputGraceMs, sessionInputMaxBytes } from "@holdfast/contract";
import { HoldfastError, hasReason } from "@holdfast/errors";
import type { SessionEvent, TerminalSize } from "../ports/sessions.ts";
import type { WorkspaceSessions } from "./sessions.ts";
import type { Terminal } from "./terminal.ts";

/** What a client sends to its terminal. */
export type TerminalInput =
  | { readonly t: "input"; readonly data: Uint8Array }
  | { readonly t: "resize"; readonly size: TerminalSize }
  /** To the foreground process group; by name, with or without "SIG". */
  | { readonly t: "signal"; readonly signal: string }
  /** Lets the attachment go. */
  | { readonly t: "detach" };

export interface TypingNeeds {
  readonly clock: Clock;
  /** Something that can be asked for has changed. */
  readonly onChange: () => void;
}

type Attached = Extract<SessionEvent, { readonly t: "attached" }>;

const again = { firstMs: 20, maxMs: 500 };
/** How long a signal, a resize or a detach waits for the input that came before it. A terminal that is full does not hold it up. */
const orderMs = 250;

/**
 * The way of one client's input into its terminal: numbered as it comes, written in order and once, and asked again as often as
 * answers are lost. What waits is bounded, so that a program that does not read holds its client back.
 */
export class Typing {
  readonly #sessions: WorkspaceSessions;
  readonly #attached: Attached;
  readonly #isObserver: boolean;
  readonly #clock: Clock;
  readonly #onChange: () => void;
  readonly #end = new AbortController();
  readonly #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #writing = false;
  #wakeReader: (() => void) | undefined;
  #next: number;
  #failure: { readonly thrown: unknown } | undefined;
  #detaching = false;
  #detached = false;

  private constructor(sessions: WorkspaceSessions, call: Terminal, attached: Attached, needs: TypingNeeds) {
    this.#sessions = sessions;
    this.#attached = attached;
    this.#isObserver = call.wish.attach.mode === "observe";
    this.#clock = needs.clock;
    this.#onChange = needs.onChange;
    this.#next = attached.nextInputSequence;
  }

  static begin(sessions: WorkspaceSessions, call: Terminal, attached: Attached, needs: TypingNeeds): Typing {
    const typing = new Typing(sessions, call, attached, needs);
    typing.#read(call.input).catch((thrown: unknown) => typing.#fail(thrown));
    return typing;
  }

  /** All input before this sequence is in the terminal. */
  get nextSequence(): number {
    return this.#next;
  }

  /** The client wishes the attachment to be let go. */
  get detaching(): boolean {
    return this.#detaching;
  }

  /** It has been. */
  get detached(): boolean {
    return this.#detached;
  }

  /** Why no input is taken any more. Set late where the terminal's own end is due. */
  get failure(): { readonly thrown: unknown } | undefined {
    return this.#failure;
  }

  /** The terminal's stream is over. */
  end(): void {
    this.#end.abort(new Error("the terminal's stream is over"));
    this.#wakeReader?.();
  }

  async #read(input: AsyncIterable<TerminalInput>): Promise<void> {
    for await (const request of input) {
      if (this.#end.signal.aborted) return;
      // An attachment to a program that has ended: nobody reads what is typed.
      if (this.#attached.attachmentId === "") continue;
      if (request.t === "input") this.#enqueue(request.data);
      else await this.#control(request);
      while (this.#isFull && !this.#end.signal.aborted) await this.#change();
    }
  }

  get #isFull(): boolean {
    return this.#waitingBytes >= sessionInputMaxBytes || this.#waiting.length >= inputAheadMax;
  }

  #enqueue(data: Uint8Array): void {
    if (this.#isObserver) throw onlyObserves("input");
    this.#waiting.push(data);
    this.#waitingBytes += data.byteLength;
    if (this.#writing) return;
    this.#writing = true;
    this.#write().catch((thrown: unknown) => this.#fail(thrown));
  }

  async #write(): Promise<void> {
    for (let data = this.#waiting[0]; data !== undefined; data = this.#waiting[0]) {
      const wish = { ...this.#ids, sequence: this.#next, data };
      await this.#untilAnswered((signal) => this.#sessions.write(wish, signal));
      this.#waiting.shift();
      this.#waitingBytes -= data.byteLength;
      this.#next += 1;
      this.#wakeReader?.();
      this.#onChange();
    }
    this.#writing = false;
    this.#wakeReader?.();
  }

  async #control(request: Exclude<TerminalInput, { readonly t: "input" }>): Promise<void> {
    if (this.#isObserver && request.t !== "detach") throw onlyObserves(request.t);
    await this.#inOrder();
    const ids = this.#ids;
    if (request.t === "resize") {
      await this.#untilAnswered((signal) => this.#sessions.resize({ ...ids, size: request.size }, signal));
    } else if (request.t === "signal") {
      await this.#sessions.signal({ ...ids, signal: request.signal }, this.#end.signal); // Never twice.
    } else await this.#detach();
  }

  async #detach(): Promise<void> {
    this.#detaching = true;
    try {
      // An observer's is not worth a change, which would need an epoch: the guest forgets it by itself.
      const wish = { ...this.#ids, clientClosed: true };
      if (!this.#isObserver) await this.#untilAnswered((signal) => this.#sessions.detach(wish, signal));
    } catch (error) {
      if (!hasReason(error, "ATTACHMENT_NOT_FOUND")) throw error; // It was the first answer that was lost.
    }
    this.#detached = true;
    this.#onChange();
  }

  async #inOrder(): Promise<void> {
    const untilMs = this.#clock.monotonicMs() + orderMs;
    while (this.#writing && !this.#end.signal.aborted) {
      const leftMs = untilMs - this.#clock.monotonicMs();
      if (leftMs <= 0) return;
      const cancel = this.#clock.schedule(leftMs, () => this.#wakeReader?.());
      await this.#change();
      cancel();
    }
  }

  /** Asks until the guest has answered: what is asked for may be asked for twice. */
  async #untilAnswered(ask: (signal: AbortSignal) => Promise<unknown>): Promise<void> {
    const { signal } = this.#end;
    for (let attempt = 0; ; attempt += 1) {
      try {
        await ask(signal);
        return;
      } catch (error) {
        if (!hasReason(error, "SESSION_DETACHED", "AGENT_UNREACHABLE")) throw error;
        await pause(this.#clock, backoffMs(again, attempt, Math.random()), signal);
      }
    }
  }

  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#wakeReader = resolve;
    });
  }

  get #ids() {
    const { session, attachmentId } = this.#attached;
    return { sessionId: session.sessionId, attachmentId };
  }

  /** A terminal that ends refuses input before its end is told; who has been refused hears of that end first. */
  #fail(thrown: unknown): void {
    if (this.#end.signal.aborted) return;
    const fail = (): void => {
      this.#failure ??= { thrown };
      this.#onChange();
    };
    if (!hasReason(thrown, "INVALID_REQUEST") && thrown instanceof HoldfastError) {
      const cancel = this.#clock.schedule(refusedInputGraceMs, fail);
      this.#end.signal.addEventListener("abort", cancel, { once: true });
    } else fail();
  }
}

function onlyObserves(what: string): HoldfastError {
  return new HoldfastError("INVALID_REQUEST", {
    message: `The ${what} was not taken: this attachment only observes. Attach with mode EXCLUSIVE to type.`,
    metadata: { field: "mode" },
    violations: [{ field: what, description: "is not for an attachment that only observes" }],
  });
}
