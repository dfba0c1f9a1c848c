import type { SandboxReading } from "../ports/cluster.ts";

/** A write, as the reading that it was composed from, and the number of its note. */
interface Noted {
  readonly from: SandboxReading;
  readonly number: number;
}

/**
 * Writes whose answer never came and that nothing has proved or defeated yet (L1). Each is kept as the reading that it was composed
 * from: it can land only while what it tested still stands. What a look shows counts only for writes that were noted before it began:
 * an answer may come late, and tell of a time before the write.
 */
export class UnresolvedWrites {
  #suspend: Noted | undefined;
  #wake: Noted | undefined;
  #delete: Noted | undefined;
  #stamp: Noted | undefined;
  #notes = 0;

  get suspend(): boolean {
    return this.#suspend !== undefined;
  }

  get delete(): boolean {
    return this.#delete !== undefined;
  }

  /** A suspend or a delete: what the handle shows may yet be stopped by it. */
  get stop(): boolean {
    return this.#suspend !== undefined || this.#delete !== undefined;
  }

  get any(): boolean {
    return this.stop || this.#wake !== undefined || this.#stamp !== undefined;
  }

  /** To be taken before a look, and given with what it shows. */
  get asOf(): number {
    return this.#notes;
  }

  suspendSentFrom(reading: SandboxReading): void {
    this.#suspend = this.#note(reading);
  }

  wakeSentFrom(reading: SandboxReading): void {
    this.#wake = this.#note(reading);
  }

  /** A write that moves no mode: it stores an epoch, or a mark of ours. */
  stampSentFrom(reading: SandboxReading): void {
    this.#stamp = this.#note(reading);
  }

  deleteSentFrom(reading: SandboxReading): void {
    this.#delete = this.#note(reading);
  }

  deleteResolved(): void {
    this.#delete = undefined;
  }

  /** The object is gone, or another has its name: every write names the uid, so none can land. */
  settleAll(asOf = this.#notes): void {
    this.#settle(
      asOf,
      () => true,
      () => true,
    );
  }

  /** Drops what this reading shows can no longer land. */
  settleBy(reading: SandboxReading, asOf = this.#notes): void {
    this.#settle(
      asOf,
      (from) => hasMoved(from, reading),
      (from) => reading.deleting || from.resourceVersion !== reading.resourceVersion,
    );
  }

  #settle(asOf: number, patch: (from: SandboxReading) => boolean, remove: (from: SandboxReading) => boolean): void {
    const unless = (noted: Noted | undefined, isOver: (from: SandboxReading) => boolean): Noted | undefined =>
      noted && noted.number <= asOf && isOver(noted.from) ? undefined : noted;
    this.#suspend = unless(this.#suspend, patch);
    this.#wake = unless(this.#wake, patch);
    this.#stamp = unless(this.#stamp, patch);
    this.#delete = unless(this.#delete, remove);
  }

  #note(from: SandboxReading): Noted {
    this.#notes += 1;
    return { from, number: this.#notes };
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

/** Where a stamp or the mode is absent, a patch tests the resourceVersion. (docs/design/kubernetes-client.md) */
function testsResourceVersion({ stamps, lacks }: SandboxReading): boolean {
  return (
    stamps.modeChangedAt === undefined ||
    stamps.writtenBy === undefined ||
    stamps.holderEpoch === undefined ||
    lacks?.mode === true ||
    lacks?.annotations === true
  );
}
