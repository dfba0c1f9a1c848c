import type { Guest } from "../ports/guest.ts";

/** Counts the streams that use each guest, so that a guest that is left keeps its connections until its last stream has ended. */
export class GuestLeases {
  readonly #streams = new Map<Guest, number>();
  readonly #retired = new Set<Guest>();
  readonly #gone = new WeakSet<Guest>();

  /** Takes a stream's place; the returned function gives it back, once. */
  take(guest: Guest): () => void {
    this.#streams.set(guest, this.of(guest) + 1);
    let given = false;
    return () => {
      if (given) return;
      given = true;
      this.#giveBack(guest);
    };
  }

  /** The guests that streams use, also those that were left. */
  inUse(): readonly Guest[] {
    return [...this.#streams.keys()];
  }

  /** True: the guest's pod was seen gone or ended, and with it what ran there. */
  isGone(guest: Guest): boolean {
    return this.#gone.has(guest);
  }

  /** How many streams use the guest. */
  of(guest: Guest): number {
    return this.#streams.get(guest) ?? 0;
  }

  /** Closes the guest as soon as no stream uses it. */
  retire(guest: Guest): void {
    if (this.of(guest) === 0) guest.close();
    else this.#retired.add(guest);
  }

  /** Notes that the guest's pod was seen gone or ended. What its streams were sent before, they still deliver. */
  noteGone(guest: Guest): void {
    this.#gone.add(guest);
    guest.retire();
  }

  /** Closes the guest now: what it ran is gone. */
  end(guest: Guest): void {
    this.#retired.delete(guest);
    guest.close();
  }

  #giveBack(guest: Guest): void {
    const left = this.of(guest) - 1;
    if (left > 0) {
      this.#streams.set(guest, left);
      return;
    }
    this.#streams.delete(guest);
    if (this.#retired.delete(guest)) guest.close();
  }
}
