import { Deadline, orAborted } from "@holdfast/async";
import type { HoldfastError } from "@holdfast/errors";
import type { WorkspaceDeps } from "./deps.ts";
import type { Turn } from "./transition-queue.ts";

/** One running stop that several callers wait for. It belongs to the service: callers that go away end only their own wait (L3). */
interface Flight<Result> {
  readonly within: Deadline;
  readonly asks: GuestAsks;
  readonly turn: Turn<Result>;
}

/** What a stop asks of the guest first. */
export interface GuestAsks {
  readonly quiesce: boolean;
  readonly flush: boolean;
}

export interface StopJoin<Result> {
  readonly budgetMs: number;
  readonly asks: GuestAsks;
  readonly caller: AbortSignal;
  /** Puts the stop in the queue. Called only when no flight can be joined. */
  readonly begin: (within: Deadline) => Turn<Result>;
  /** For a joiner that wants what the flight does not perform; nothing is sent for it. */
  readonly missed: (what: keyof GuestAsks) => HoldfastError;
  /** For a caller whose own time ends: in the queue nothing was sent, later the flight goes on. */
  readonly late: (begun: boolean) => HoldfastError;
}

/** Overlapping stops of one kind share one flight, which runs to its longest joiner's deadline (L3). */
export class StopFlight<Result> {
  readonly #deps: WorkspaceDeps;
  #flight: Flight<Result> | undefined;

  constructor(deps: WorkspaceDeps) {
    this.#deps = deps;
  }

  /** True while one runs or waits for its turn. */
  get isUnderWay(): boolean {
    return this.#flight !== undefined;
  }

  async join(wish: StopJoin<Result>): Promise<Result> {
    wish.caller.throwIfAborted();
    // One whose time is over only waits for its last answer: whoever comes now has a turn, and a time, of their own.
    const running = this.#flight?.within.signal.aborted ? undefined : this.#flight;
    const flight = running ?? this.#begin(wish);
    for (const what of ["quiesce", "flush"] as const) {
      if (wish.asks[what] && !flight.asks[what]) throw wish.missed(what);
    }
    flight.within.prolong(wish.budgetMs);
    using own = new Deadline(this.#deps.clock, wish.budgetMs, wish.caller);
    try {
      return await orAborted(flight.turn.ended, own.signal);
    } catch (error) {
      wish.caller.throwIfAborted();
      if (!own.expired) throw error;
      // A flight whose time ends with this caller's says itself why.
      if (!flight.turn.begun || flight.within.remainingMs() > 0) throw wish.late(flight.turn.begun);
      return await orAborted(flight.turn.ended, wish.caller);
    }
  }

  #begin(wish: StopJoin<Result>): Flight<Result> {
    const within = new Deadline(this.#deps.clock, wish.budgetMs);
    const flight: Flight<Result> = { within, asks: wish.asks, turn: wish.begin(within) };
    this.#flight = flight;
    const end = (): void => {
      within[Symbol.dispose]();
      if (this.#flight === flight) this.#flight = undefined;
    };
    flight.turn.ended.then(end, end);
    return flight;
  }
}

/** The running stops of one kind, by what their callers must agree on to share one. */
export class StopFlights<Result> {
  readonly #deps: WorkspaceDeps;
  readonly #flights = new Map<string, StopFlight<Result>>();

  constructor(deps: WorkspaceDeps) {
    this.#deps = deps;
  }

  async join(key: string, wish: StopJoin<Result>): Promise<Result> {
    const flight = this.#flights.get(key) ?? new StopFlight<Result>(this.#deps);
    this.#flights.set(key, flight);
    try {
      return await flight.join(wish);
    } finally {
      if (!flight.isUnderWay && this.#flights.get(key) === flight) this.#flights.delete(key);
    }
  }
}
