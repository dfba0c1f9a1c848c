import type { Clock } from "@holdfast/async";
import { inputAheadMax, inputAheadWaitMs, inputWindowMaxBytes } from "@holdfast/contract";
import { AnsweredError } from "@holdfast/guest-link";

/** A write of a caller. */
export interface InputWrite {
  readonly sequence: number;
  readonly data: Uint8Array;
  /** Throws once this caller may not write any more. Asked in the same step as each write. */
  readonly admit: () => void;
  /** Aborts when the caller gives up. How much is written by then is remembered. */
  readonly signal: AbortSignal;
}

/** What was begun of the next sequence and not finished. */
interface Partial {
  readonly data: Uint8Array;
  written: number;
}

const fullFirstMs = 1;
const fullMaxMs = 32;

/**
 * The input of one attachment: in order, and each sequence once, from however many callers and however often it comes (G19). A write
 * that was given up in the middle is continued by the next that carries its sequence.
 */
export class SequencedInput {
  readonly #write: (bytes: Uint8Array) => number;
  readonly #clock: Clock;
  readonly #waiting = new Set<() => void>();
  #next = 1;
  #partial: Partial | undefined;
  /** A caller is writing the next sequence. */
  #writing = false;
  #calls = 0;
  #bytes = 0;
  #over: AnsweredError | undefined;

  /** `write` takes as much as fits now. */
  constructor(write: (bytes: Uint8Array) => number, clock: Clock) {
    this.#write = write;
    this.#clock = clock;
  }

  /** The sequence that comes next. */
  get next(): number {
    return this.#next;
  }

  /** Nothing is written from here on; those who wait are told why, in the words that it answers. The first call counts. */
  end(why: AnsweredError): AnsweredError {
    this.#over ??= this.withHalf(why);
    this.#wake();
    return this.#over;
  }

  /** The same answer, which also says how much is written of a message that was begun: what stands in the terminal is never left open. */
  withHalf(why: AnsweredError): AnsweredError {
    const { written = 0, data } = this.#partial ?? {};
    if (written === 0 || data === undefined) return why;
    const sequence = String(this.#next);
    return new AnsweredError(
      why.reason,
      `${why.message} Of input ${sequence} the first ${written} of ${data.length} bytes were written.`,
      { ...why.metadata, sequence, written: String(written) },
    );
  }

  /**
   * Resolves with the next sequence once all of this one is in the terminal. Rejects with INPUT_OUT_OF_ORDER, the reason of `end`, as
   * `admit` throws, or as the signal.
   */
  async put(wish: InputWrite): Promise<number> {
    if (this.#over) throw this.#over;
    if (wish.sequence < this.#next) return this.#next;
    const isNext = wish.sequence === this.#next && !this.#writing;
    const ahead = this.#calls >= inputAheadMax || this.#bytes + wish.data.length > inputWindowMaxBytes;
    if (!isNext && ahead) throw this.#outOfOrder(wish.sequence, "as much as may wait is waiting already");
    this.#calls += 1;
    this.#bytes += wish.data.length;
    try {
      if (await this.#claimTurn(wish)) await this.#run(wish);
      return this.#next;
    } finally {
      this.#calls -= 1;
      this.#bytes -= wish.data.length;
    }
  }

  /** True once it is this sequence's turn: nobody else writes from then on. False once it has been written by another call. */
  async #claimTurn({ sequence, signal }: InputWrite): Promise<boolean> {
    let missingUntilMs: number | undefined;
    let lastNext = this.#next;
    for (;;) {
      if (this.#over) throw this.#over;
      signal.throwIfAborted();
      if (sequence < this.#next) return false;
      if (sequence === this.#next && !this.#writing) {
        this.#writing = true; // In the step in which it was looked at.
        return true;
      }
      if (this.#next !== lastNext) missingUntilMs = undefined;
      lastNext = this.#next;
      // Time counts only while the one before has not come: a program that does not read makes nobody late.
      if (this.#writing) missingUntilMs = undefined;
      else missingUntilMs ??= this.#clock.monotonicMs() + inputAheadWaitMs;
      const leftMs = missingUntilMs === undefined ? undefined : missingUntilMs - this.#clock.monotonicMs();
      if (leftMs !== undefined && leftMs <= 0) {
        throw this.#outOfOrder(sequence, `those before it did not come within ${inputAheadWaitMs} ms`);
      }
      await this.#changed(leftMs, signal);
    }
  }

  /** Of whoever has the turn. */
  async #run({ sequence, data, admit, signal }: InputWrite): Promise<void> {
    try {
      const partial = this.#continued(sequence, data);
      for (let waitMs = fullFirstMs; ; ) {
        if (this.#over) throw this.#over;
        signal.throwIfAborted();
        this.#admit(admit);
        const taken = partial.written < data.length ? this.#write(data.subarray(partial.written)) : 0;
        partial.written += taken;
        if (partial.written >= data.length) break;
        waitMs = taken > 0 ? fullFirstMs : Math.min(fullMaxMs, waitMs * 2);
        await this.#pause(waitMs, signal);
      }
      this.#partial = undefined;
      this.#next = sequence + 1;
    } finally {
      this.#writing = false;
      this.#wake();
    }
  }

  #admit(admit: () => void): void {
    try {
      admit();
    } catch (error) {
      throw error instanceof AnsweredError ? this.withHalf(error) : error;
    }
  }

  #continued(sequence: number, data: Uint8Array): Partial {
    const begun = this.#partial;
    if (begun === undefined) {
      this.#partial = { data, written: 0 };
      return this.#partial;
    }
    if (Buffer.compare(begun.data, data) !== 0) {
      throw new AnsweredError(
        "INVALID_REQUEST",
        `Input ${sequence} was begun with other bytes (${begun.written} of ${begun.data.length} are written). Send the same again.`,
        { field: "data", sequence: String(sequence), written: String(begun.written) },
      );
    }
    return begun;
  }

  /** Resolves when something has changed, or after so long. */
  #changed(afterMs: number | undefined, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#waiting.delete(wake);
        signal.removeEventListener("abort", wake);
        cancel?.();
        resolve();
      };
      this.#waiting.add(wake);
      signal.addEventListener("abort", wake, { once: true });
      const cancel = afterMs === undefined ? undefined : this.#clock.schedule(afterMs, wake);
    });
  }

  /** The kernel tells nobody when a full terminal has room again: it is tried, ever more rarely. */
  #pause(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        cancel();
        signal.removeEventListener("abort", wake);
        this.#pausing = undefined;
        resolve();
      };
      const cancel = this.#clock.schedule(ms, wake);
      signal.addEventListener("abort", wake, { once: true });
      this.#pausing = wake;
    });
  }

  #pausing: (() => void) | undefined;

  #wake(): void {
    this.#pausing?.();
    for (const wake of [...this.#waiting]) wake();
  }

  #outOfOrder(sequence: number, why: string): AnsweredError {
    return new AnsweredError(
      "INPUT_OUT_OF_ORDER",
      `Input ${sequence} was not written: ${this.#next} comes next, and ${why}. Send from ${this.#next} on.`,
      { expected: String(this.#next), sequence: String(sequence) },
    );
  }
}
