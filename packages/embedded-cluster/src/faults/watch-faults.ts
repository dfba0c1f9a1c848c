import { type Clock, pause, untilAborted } from "../clock.ts";
import { type FaultedRequest, type FaultMatch, isMeant } from "./fault-rule.ts";

/** One watch that runs, as its stream sees it. */
export interface OpenWatch {
  /** Aborts when the watch is to be cut. */
  readonly cut: AbortSignal;
  /** Tells whether something holds it up right now. */
  readonly isHeldUp: boolean;
  /** Before something is delivered: undefined when it may be at once, else resolves when it may, or when the signal aborts. */
  ready(signal: AbortSignal): Promise<void> | undefined;
  close(): void;
}

interface WatchHold {
  readonly match: FaultMatch;
  /** Undefined: until it is undone. */
  readonly delayMs: number | undefined;
  readonly undone: AbortController;
  met: number;
}

/** The watches that run, and what holds them up. */
export class WatchFaults {
  readonly #clock: Clock;
  readonly #open = new Map<AbortController, FaultedRequest>();
  readonly #holds = new Set<WatchHold>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  open(request: FaultedRequest): OpenWatch {
    const cut = new AbortController();
    this.#open.set(cut, request);
    const met = new Set<WatchHold>();
    const holds = this.#holds;
    return {
      cut: cut.signal,
      get isHeldUp() {
        return [...holds].some((hold) => isMeant(hold.match, request));
      },
      ready: (signal) => {
        const holds = [...this.#holds].filter((hold) => isMeant(hold.match, request));
        if (holds.length === 0) return undefined;
        for (const hold of holds) {
          if (!met.has(hold)) hold.met++;
          met.add(hold);
        }
        return this.#wait(request, holds, signal);
      },
      close: () => this.#open.delete(cut),
    };
  }

  drop(match: FaultMatch): number {
    const meant = [...this.#open].filter(([, request]) => isMeant(match, request));
    for (const [cut] of meant) cut.abort();
    return meant.length;
  }

  hold(match: FaultMatch, delayMs: number | undefined): WatchHold {
    const hold = { match, delayMs, undone: new AbortController(), met: 0 };
    this.#holds.add(hold);
    return hold;
  }

  undo(hold: WatchHold): void {
    this.#holds.delete(hold);
    hold.undone.abort();
  }

  /** Waits out the delays, then for as long as any stall stands, one that came meanwhile included. */
  async #wait(request: FaultedRequest, holds: readonly WatchHold[], signal: AbortSignal): Promise<void> {
    for (const { delayMs, undone } of holds) {
      if (delayMs !== undefined) await pause(this.#clock, delayMs, AbortSignal.any([signal, undone.signal]));
    }
    for (;;) {
      const stall = [...this.#holds].find((hold) => hold.delayMs === undefined && isMeant(hold.match, request));
      if (stall === undefined || signal.aborted) return;
      await untilAborted(AbortSignal.any([signal, stall.undone.signal]));
    }
  }
}
