import { reattachWindowMs } from "@holdfast/contract";
import { type LinkLost, PeerSilent } from "@holdfast/guest-link";

/** A time in which a guest is not reached, and what was followed there waits to be taken up again. */
export class Outage {
  /** What it began with. */
  readonly cause: LinkLost;
  readonly #sinceMs: number;
  #tries = 0;

  /** A link that was silent was lost when it was last heard of: that time counts. */
  constructor(cause: LinkLost, nowMs: number) {
    this.cause = cause;
    this.#sinceMs = cause.cause instanceof PeerSilent ? nowMs - cause.cause.silentMs : nowMs;
  }

  /** How long the next try may be waited for; undefined: the time is over. However long it has been, there is one try. */
  leftMs(nowMs: number): number | undefined {
    const leftMs = this.#sinceMs + reattachWindowMs - nowMs;
    if (leftMs > 0) return leftMs;
    return this.#tries === 0 ? 0 : undefined;
  }

  /** Counts a try, and tells how many there were before it. */
  tried(): number {
    return this.#tries++;
  }

  seconds(nowMs: number): number {
    return Math.round((nowMs - this.#sinceMs) / 1_000);
  }
}
