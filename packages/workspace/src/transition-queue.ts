import { Deadline, orAborted, SerialQueue } from "@holdfast/async";
import type { HoldfastError } from "@holdfast/errors";
import type { Handle } from "./state/handle.ts";

/** A suspend or delete ended the waiting part of a start (L3). */
export class Preempted extends Error {
  readonly refusal: HoldfastError;
  constructor(refusal: HoldfastError) {
    super(refusal.message);
    this.name = "Preempted";
    this.refusal = refusal;
  }
}

/** Runs the transitions of one handle one at a time (L3). */
export class TransitionQueue {
  readonly #ws: Handle;
  readonly #queue = new SerialQueue();
  /** Turns that run or wait. */
  #turns = 0;
  /** Of the start that runs. */
  #preempt: ((reason: Preempted) => void) | undefined;
  /** Why starts give way: set while a stop waits for its turn. */
  #stopsWaiting: Preempted[] = [];

  constructor(ws: Handle) {
    this.#ws = ws;
  }

  /** A transition runs, or waits for its turn. */
  get busy(): boolean {
    return this.#turns > 0;
  }

  /** Resolves once every transition that has come so far is over. */
  async idle(): Promise<void> {
    await this.#queue.run(async () => undefined);
  }

  /** Runs a start in its turn. A suspend or delete that comes meanwhile ends its waiting. The caller's end is the caller's only. */
  async start<T>(
    budgetMs: number,
    caller: AbortSignal,
    late: () => HoldfastError,
    task: (within: Deadline) => Promise<T>,
  ): Promise<T> {
    const preempt = new AbortController();
    const within = new Deadline(this.#ws.deps.clock, budgetMs, AbortSignal.any([caller, preempt.signal]));
    this.#ws.startsUnderWay += 1;
    const turn = this.#turn(async () => {
      // What is over before its turn, or gives way to a stop behind it, has not begun and changes nothing.
      const [waiting] = this.#stopsWaiting;
      if (waiting) throw waiting.refusal;
      within.throwIfOver();
      this.#preempt = (reason) => preempt.abort(reason);
      return await task(within);
    });
    const over = (): void => {
      this.#ws.startsUnderWay -= 1;
      within[Symbol.dispose]();
    };
    turn.ended.then(over, over);
    return await awaitTurn(turn, within, caller, late);
  }

  /** Runs what moves no state in its turn. Nothing gives way for it, and a stop behind it only waits. */
  async between<T>(
    budgetMs: number,
    caller: AbortSignal,
    late: () => HoldfastError,
    task: () => Promise<T>,
  ): Promise<T> {
    using within = new Deadline(this.#ws.deps.clock, budgetMs, caller);
    const turn = this.#turn(async () => {
      within.throwIfOver(); // What is over before its turn has not begun.
      return await task();
    });
    return await awaitTurn(turn, within, caller, late);
  }

  /**
   * Runs a stop in its turn, and makes starts before it give way, once `fence` lets it pass: who has lost the workspace to another holder
   * must not end that one's start (L23). Where the fence cannot be looked at the stop only waits for its turn.
   */
  stop<T>(refusal: HoldfastError, fence: () => Promise<"passes" | "unread">, task: () => Promise<T>): Turn<T> {
    const reason = new Preempted(refusal);
    let refused: { readonly error: unknown } | undefined;
    const turn = this.#turn(async () => {
      this.#stopsWaiting = this.#stopsWaiting.filter((waiting) => waiting !== reason);
      if (refused) throw refused.error;
      return await task();
    });
    if (this.#ws.startsUnderWay === 0) return turn;
    const looked = fence().then(
      (look) => {
        if (turn.begun || look === "unread") return;
        this.#stopsWaiting.push(reason);
        this.#preempt?.(reason);
      },
      (error: unknown) => {
        refused = { error };
        if (!turn.begun) throw error;
      },
    );
    // A refusal does not wait for its turn.
    const ended = Promise.race([turn.ended, looked.then(() => turn.ended)]);
    return {
      ended,
      get begun() {
        return turn.begun;
      },
    };
  }

  #turn<T>(task: () => Promise<T>): Turn<T> {
    let begun = false;
    this.#turns += 1;
    const ended = this.#queue.run(async () => {
      begun = true;
      this.#ws.inTransition = true;
      try {
        return await task();
      } finally {
        this.#turns -= 1;
        this.#ws.inTransition = false;
        this.#ws.waitingFor = undefined;
        this.#ws.actingUnder = undefined;
        this.#ws.startedAs = undefined;
        this.#preempt = undefined;
      }
    });
    return {
      ended,
      get begun() {
        return begun;
      },
    };
  }
}

export interface Turn<T> {
  readonly ended: Promise<T>;
  readonly begun: boolean;
}

/**
 * Waits for a turn's end. A deadline that runs out in the queue ends the wait as `late`; one that runs out in the turn is told by the
 * turn itself, which knows why.
 */
async function awaitTurn<T>(
  turn: Turn<T>,
  within: Deadline,
  caller: AbortSignal,
  late: () => HoldfastError,
): Promise<T> {
  try {
    return await orAborted(turn.ended, within.signal);
  } catch (error) {
    caller.throwIfAborted();
    if (!within.signal.aborted) throw error;
    if (!turn.begun && within.expired) throw late();
    return await orAborted(turn.ended, caller);
  }
}
