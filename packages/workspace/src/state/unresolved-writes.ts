import type { SandboxReading } from "../ports/cluster.ts";

/**
 * Writes whose answer never came and that nothing has proved or defeated yet (L1). Each is kept as the reading that it was composed
 * from: it can land only while what it tested still stands.
 */
export class UnresolvedWrites {
  #suspend: SandboxReading | undefined;
  #wake: SandboxReading | undefined;
  #delete: SandboxReading | undefined;
  #stamp: SandboxReading | undefined;

  get suspend(): boolean {
    return this.#suspend !== undefined;
  }

  /** A suspend or a delete: what the handle shows may yet be stopped by it. */
  get stop(): boolean {
    return this.#suspend !== undefined || this.#delete !== undefined;
  }

  get any(): boolean {
    return this.stop || this.#wake !== undefined || this.#stamp !== undefined;
  }

  suspendSentFrom(reading: SandboxReading): void {
    this.#suspend = reading;
  }

  wakeSentFrom(reading: SandboxReading): void {
    this.#wake = reading;
  }

  /** A write that moves no mode: it stores an epoch, or a mark of ours. */
  stampSentFrom(reading: SandboxReading): void {
    this.#stamp = reading;
  }

  deleteSentFrom(reading: SandboxReading): void {
    this.#delete = reading;
  }

  suspendResolved(): void {
    this.#suspend = undefined;
  }

  deleteResolved(): void {
    this.#delete = undefined;
  }

  /** The object is gone, or another has its name: every write names the uid, so none can land. */
  settleAll(): void {
    this.#suspend = undefined;
    this.#wake = undefined;
    this.#delete = undefined;
    this.#stamp = undefined;
  }

  /** Drops what this reading shows can no longer land. */
  settleBy(reading: SandboxReading): void {
    if (this.#suspend && hasMoved(this.#suspend, reading)) this.#suspend = undefined;
    if (this.#wake && hasMoved(this.#wake, reading)) this.#wake = undefined;
    if (this.#stamp && hasMoved(this.#stamp, reading)) this.#stamp = undefined;
    if (this.#delete && (reading.deleting || this.#delete.resourceVersion !== reading.resourceVersion)) {
      this.#delete = undefined;
    }
  }
}

/** True when a patch that was composed from `before` can no longer apply to what `now` shows: something that it tests moved. */
export function hasMoved(before: SandboxReading, now: SandboxReading): boolean {
  return wasWritten(before, now) || (testsResourceVersion(before) && before.resourceVersion !== now.resourceVersion);
}

/** True when somebody wrote what our contract is about: what was decided on `before` must be decided again. */
export function wasWritten(before: SandboxReading, now: SandboxReading): boolean {
  return (
    before.uid !== now.uid ||
    before.mode !== now.mode ||
    before.stamps.modeChangedAt !== now.stamps.modeChangedAt ||
    before.stamps.writtenBy !== now.stamps.writtenBy ||
    before.stamps.holderEpoch !== now.stamps.holderEpoch
  );
}

/** Absence cannot be tested, so a patch tests the resourceVersion where a stamp or the mode is. (docs/design/object-contract.md) */
function testsResourceVersion({ stamps, lacks }: SandboxReading): boolean {
  return (
    stamps.modeChangedAt === undefined ||
    stamps.writtenBy === undefined ||
    stamps.holderEpoch === undefined ||
    lacks?.mode === true ||
    lacks?.annotations === true
  );
}
