import { backoffMs, pause } from "@holdfast/async";
import type { ClusterNews } from "../ports/cluster.ts";
import { FreshLook } from "../state/fresh-look.ts";
import type { Handle } from "../state/handle.ts";
import type { TransitionQueue } from "../transition-queue.ts";
import { concerns } from "./concerns.ts";
import { lookAgain } from "./look-again.ts";

/** News that came while a recipe ran; the older give way, since the look after it tells all. */
const keptMax = 16;
const retry = { firstMs: 250, maxMs: 10_000 };

/** How one handle takes what the watch says: it costs no timer and no request while nothing contradicts what the handle holds (L37). */
export class Noticing {
  readonly #ws: Handle;
  readonly #transitions: TransitionQueue;
  readonly #closed = new AbortController();
  readonly #look = new FreshLook<void>();
  #kept: ClusterNews[] | undefined;
  #later: Promise<void> | undefined;

  constructor(ws: Handle, transitions: TransitionQueue) {
    this.#ws = ws;
    this.#transitions = transitions;
  }

  /** Resolves once what the news comes to has been done; undefined: it comes to nothing. Never rejects. */
  heard(news: ClusterNews): Promise<void> | undefined {
    if (this.#transitions.busy) return this.#keep(news);
    return concerns(this.#ws, news) ? this.#look.run(() => this.#lookUntilSeen()) : undefined;
  }

  /** Nobody looks for this handle any more. */
  close(): void {
    this.#closed.abort(new Error("the handle was let go"));
  }

  /** What was said once is not said again: a look that fails is made again until it shows something. */
  async #lookUntilSeen(): Promise<void> {
    const { signal } = this.#closed;
    for (let failures = 0; !signal.aborted; failures += 1) {
      if (await lookAgain(this.#ws)) return;
      const waitMs = backoffMs(retry, failures, Math.random());
      await pause(this.#ws.deps.clock, waitMs, signal).catch(() => undefined); // Only the signal rejects it.
    }
  }

  /** The recipe that runs sees for itself; what it leaves is compared with the news once it is over. */
  #keep(news: ClusterNews): Promise<void> {
    this.#kept ??= [];
    this.#kept.push(news);
    if (this.#kept.length > keptMax) this.#kept.shift();
    this.#later ??= this.#whenIdle();
    return this.#later;
  }

  async #whenIdle(): Promise<void> {
    while (this.#transitions.busy) await this.#transitions.idle();
    const kept = this.#kept ?? [];
    this.#kept = undefined;
    this.#later = undefined;
    if (kept.some((news) => concerns(this.#ws, news))) await this.#look.run(() => this.#lookUntilSeen());
  }
}
