import { watchQueueMax } from "@holdfast/contract";
import { type Change, newsOf, type WatchFilter, type WorkspaceNews } from "./change.ts";
import { isAfter } from "./resource-version.ts";

/**
 * Where a watcher stands. `fresh`: has heard nothing. `behind`: waits for what came after its version. `live`: hears changes as they
 * come. `lost`: what it missed is not to be had, so everything is said anew.
 */
export type Standing = "fresh" | "behind" | "live" | "lost";

/** One watcher's place: its filter, how far it has heard, and a bounded queue, since nobody waits for a slow reader. */
export class Watcher {
  readonly filter: WatchFilter;
  standing: Standing;
  /** All up to here is in the queue or was taken; undefined until it has heard anything. */
  version: string | undefined;
  /** The cluster said a bookmark: the watcher should hear how far it is though nothing happened. */
  bookmarkDue = false;
  #queue: WorkspaceNews[] = [];
  #wake: ((error?: Error) => void) | undefined;
  #failure: Error | undefined;

  constructor(filter: WatchFilter, from: string | undefined) {
    this.filter = filter;
    this.version = from;
    this.standing = from === undefined ? "fresh" : "behind";
  }

  /** Queues a change that it has not heard. A queue that is full is given up: the reader will hear everything anew. */
  hear(change: Change): void {
    if (this.version !== undefined && !isAfter(change.version, this.version)) return;
    const news = newsOf(change, this.filter);
    if (!news) return;
    if (this.#queue.length < watchQueueMax) this.#queue.push(news);
    else this.lose();
    this.wake();
  }

  /** All up to this version has been heard. */
  pass(version: string): void {
    if (this.version !== undefined && !isAfter(version, this.version)) return;
    this.version = version;
    if (this.bookmarkDue) this.wake();
  }

  /** Nothing that is queued is of use any more. */
  lose(): void {
    this.#queue = [];
    this.standing = "lost";
    this.wake();
  }

  /** Begins to hear changes after this version. */
  begin(version: string): void {
    this.#queue = [];
    this.standing = "live";
    this.version = version;
    this.wake();
  }

  take(): WorkspaceNews | undefined {
    return this.#queue.shift();
  }

  /** Ends the watch with this error, once what is queued has been taken. */
  fail(error: Error): void {
    this.#failure = error;
    this.wake();
  }

  wake(): void {
    this.#wake?.();
  }

  /** Resolves when there may be something to take; rejects with the failure, or the signal's reason. */
  woken(signal: AbortSignal): Promise<void> {
    if (this.#failure) return Promise.reject(this.#failure);
    if (signal.aborted) return Promise.reject(signal.reason);
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.#wake = undefined;
        reject(signal.reason);
      };
      signal.addEventListener("abort", onAbort, { once: true });
      this.#wake = () => {
        this.#wake = undefined;
        signal.removeEventListener("abort", onAbort);
        if (this.#failure) reject(this.#failure);
        else resolve();
      };
    });
  }
}
