import type { Clock } from "@holdfast/async";
import { type ExecutionId, executionTombstoneKeptMs, executionTombstonesMax } from "@holdfast/contract";

interface Tombstone {
  readonly hash: string;
  readonly untilMs: number;
}

/**
 * Ids whose record is gone, so that they are not run again: for a day, and at most so many. Kept in memory: they do not outlive
 * the agent process.
 */
export class Tombstones {
  /** In the order in which they were added, which is the order in which they expire. */
  readonly #stones = new Map<ExecutionId, Tombstone>();
  readonly #clock: Clock;
  readonly #max: number;

  constructor(clock: Clock, max = executionTombstonesMax) {
    this.#clock = clock;
    this.#max = max;
  }

  add(id: ExecutionId, hash: string): void {
    const now = this.#clock.monotonicMs();
    this.#stones.set(id, { hash, untilMs: now + executionTombstoneKeptMs });
    for (const [oldest, { untilMs }] of this.#stones) {
      if (this.#stones.size <= this.#max && untilMs > now) return;
      this.#stones.delete(oldest);
    }
  }

  has(id: ExecutionId): boolean {
    return this.hashOf(id) !== undefined;
  }

  /** The hash of the request that ran under this id. */
  hashOf(id: ExecutionId): string | undefined {
    const stone = this.#stones.get(id);
    return stone !== undefined && stone.untilMs > this.#clock.monotonicMs() ? stone.hash : undefined;
  }
}
