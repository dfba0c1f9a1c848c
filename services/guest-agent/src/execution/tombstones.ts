import { type ExecutionId, executionTombstoneKeptMs, executionTombstonesMax } from "@holdfast/contract";
import { StartJournal } from "./start-journal.ts";
import type { Mark, StartMark } from "./start-marks.ts";

/** An id that has been used, and must not run again. */
export interface Tombstone {
  /** Of the request that ran under it. */
  readonly hash: string;
  /** Of the agent process that ran it. */
  readonly bootId: string;
  /** Undefined while it runs. Wall clock: it has to mean something to the next agent process. */
  readonly untilMs: number | undefined;
}

/** Where marks are kept, so that they outlive the agent process. */
export interface StartLog {
  /** Throws when it could not be kept. */
  append(mark: Mark): void;
  /** Now and then: makes room of what says nothing any more. */
  tidy(marks: () => Iterable<StartMark>): Promise<void>;
}

/**
 * Every id that has been started, from before its spawn on (G6): for a day after its end, and at most so many, of which those that run
 * are never let go.
 */
export class Tombstones {
  readonly #bootId: string;
  readonly #log: StartLog;
  readonly #now: () => number;
  readonly #max: number;
  readonly #running = new Map<ExecutionId, Tombstone>();
  /** In the order in which they expire. */
  readonly #ended = new Map<ExecutionId, Tombstone>();

  constructor(bootId: string, log: StartLog, now: () => number, max = executionTombstonesMax) {
    this.#bootId = bootId;
    this.#log = log;
    this.#now = now;
    this.#max = max;
  }

  /** With what former agent processes left in this directory, kept there. */
  static async open(directory: string, bootId: string, now: () => number): Promise<Tombstones> {
    const former = new Tombstones(bootId, nowhere, now);
    const journal = await StartJournal.open(directory, (marks) => {
      former.restore(marks);
      return former.marks();
    });
    const stones = new Tombstones(bootId, journal, now);
    stones.restore(former.marks());
    return stones;
  }

  /** Takes what a former agent process left. What ran then counts from now on: nobody knows when it ended. */
  restore(marks: Iterable<StartMark>): void {
    for (const { id, hash, bootId, endedAtMs } of marks) {
      this.#bury(id, { hash, bootId, untilMs: (endedAtMs ?? this.#now()) + executionTombstoneKeptMs });
    }
  }

  /** Keeps that the id is used. Throws, and it is not, where that could not be kept. */
  begin(id: ExecutionId, hash: string): void {
    this.#log.append({ t: "started", id, hash, bootId: this.#bootId });
    this.#running.set(id, { hash, bootId: this.#bootId, untilMs: undefined });
  }

  /** Nothing was started under it after all: it may be used again. Nothing is done where it was not begun. */
  withdraw(id: ExecutionId): void {
    if (!this.#running.delete(id)) return;
    this.#appendOrSay({ t: "withdrawn", id });
  }

  /** It has ended: it is remembered for a day from here on. */
  end(id: ExecutionId): void {
    const stone = this.#running.get(id);
    if (stone === undefined) return;
    this.#running.delete(id);
    const endedAtMs = this.#now();
    this.#bury(id, { ...stone, untilMs: endedAtMs + executionTombstoneKeptMs });
    this.#appendOrSay({ t: "ended", id, endedAtMs });
    void this.#log.tidy(() => this.marks());
  }

  /** What is remembered of an id. */
  get(id: ExecutionId): Tombstone | undefined {
    const running = this.#running.get(id);
    if (running !== undefined) return running;
    const stone = this.#ended.get(id);
    return stone !== undefined && isStanding(stone, this.#now()) ? stone : undefined;
  }

  /** All that is remembered, as it is to be kept. */
  *marks(): Generator<StartMark> {
    for (const [id, { hash, bootId, untilMs }] of [...this.#ended, ...this.#running]) {
      const end = untilMs === undefined ? {} : { endedAtMs: untilMs - executionTombstoneKeptMs };
      yield { t: "started", id, hash, bootId, ...end };
    }
  }

  #bury(id: ExecutionId, stone: Tombstone): void {
    this.#ended.delete(id); // One that had expired: the order is that of the ends.
    this.#ended.set(id, stone);
    const now = this.#now();
    for (const [oldest, other] of this.#ended) {
      if (this.#running.size + this.#ended.size <= this.#max && isStanding(other, now)) return;
      this.#ended.delete(oldest);
    }
  }

  /** What is not kept makes the next agent process remember an id for longer than it need: that harms nobody. */
  #appendOrSay(mark: Mark): void {
    try {
      this.#log.append(mark);
    } catch (error) {
      console.error(`execution ${mark.id}: that it is over could not be kept:`, error);
    }
  }
}

const nowhere: StartLog = { append: () => undefined, tidy: async () => undefined };

function isStanding(stone: Tombstone, now: number): boolean {
  return stone.untilMs === undefined || stone.untilMs > now;
}
