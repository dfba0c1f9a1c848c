import type { Clock } from "@holdfast/async";
import { workspaceEventQueueMax } from "@holdfast/contract";
import type { Heard, WorkspaceEvent } from "./workspace-event.ts";

/** One listener's place. One waiter at a time. */
export interface EventSubscription extends Disposable {
  /** The next event, or how many were missed. Rejects with the signal's reason. */
  next(signal: AbortSignal): Promise<Heard>;
}

/**
 * What one handle noticed, for whoever listens. An event stands in every listener's queue before the call that noticed it returns. A
 * listener that does not read costs nobody anything: its oldest events give way, and it is told how many.
 */
export class WorkspaceEvents {
  readonly #clock: Clock;
  readonly #listeners = new Set<Listener>();
  #sequence = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  publish(event: WorkspaceEvent): void {
    this.#sequence += 1;
    const heard: Heard = { t: "event", sequence: this.#sequence, at: this.#clock.now(), event };
    for (const listener of this.#listeners) listener.hear(heard);
  }

  /** Hears what comes from now on. */
  subscribe(): EventSubscription {
    const listener = new Listener(() => this.#listeners.delete(listener));
    this.#listeners.add(listener);
    return listener;
  }

  /** How many listen. */
  get size(): number {
    return this.#listeners.size;
  }
}

class Listener implements EventSubscription {
  readonly #leave: () => void;
  readonly #queue: Heard[] = [];
  #missed = 0;
  #wake: (() => void) | undefined;

  constructor(leave: () => void) {
    this.#leave = leave;
  }

  hear(heard: Heard): void {
    this.#queue.push(heard);
    if (this.#queue.length > workspaceEventQueueMax) {
      this.#queue.shift();
      this.#missed += 1;
    }
    this.#wake?.();
  }

  async next(signal: AbortSignal): Promise<Heard> {
    signal.throwIfAborted();
    while (this.#queue.length === 0) await this.#woken(signal);
    if (this.#missed > 0) {
      const missed = this.#missed;
      this.#missed = 0;
      return { t: "gap", missed };
    }
    const [heard] = this.#queue.splice(0, 1);
    if (!heard) throw new Error("a queue that was not empty held nothing");
    return heard;
  }

  [Symbol.dispose](): void {
    this.#leave();
  }

  #woken(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = (): void => reject(signal.reason);
      signal.addEventListener("abort", onAbort, { once: true });
      this.#wake = () => {
        this.#wake = undefined;
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
    });
  }
}
