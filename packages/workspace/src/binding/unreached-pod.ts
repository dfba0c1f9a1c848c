import { unreachedLookEveryMs } from "@holdfast/contract";
import type { Handle } from "../state/handle.ts";

/**
 * Looks for the pod of one guest that its streams cannot reach again, whatever the watch says or fails to say: at the first try that fails,
 * and while tries go on not more often than every 4 s, however many streams try. It keeps no timer.
 */
export class UnreachedPod {
  readonly #ws: Handle;
  #isLooking = false;
  #lookedAtMs: number | undefined;

  constructor(ws: Handle) {
    this.#ws = ws;
  }

  /** A stream has tried, and not reached the guest. */
  tried(): void {
    const nowMs = this.#ws.deps.clock.monotonicMs();
    const isEarly = this.#lookedAtMs !== undefined && nowMs - this.#lookedAtMs < unreachedLookEveryMs;
    if (this.#isLooking || isEarly) return;
    this.#isLooking = true;
    void this.#ws.lookAgain().finally(() => {
      this.#isLooking = false;
      this.#lookedAtMs = this.#ws.deps.clock.monotonicMs();
    });
  }
}
