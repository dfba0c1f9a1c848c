import type { SandboxNews, SandboxReading, SandboxWatchEnd, SandboxWatchWish } from "@holdfast/workspace";

type Said = SandboxNews & { readonly number: number };

/** The watches of Sandboxes in memory: every change has a version, and what is old can be forgotten. */
export class FakeSandboxWatches {
  /** Every watch that was asked for, by the version that it asked from. */
  readonly asked: string[] = [];
  /** The next watches are answered like this instead: HTTP 410, an ERROR 410 once it stands, or not at all. */
  readonly refusals: ("expired" | "expired in stream" | "broken")[] = [];
  #number = 1_000;
  #history: Said[] = [];
  /** What came before is not to be had any more. */
  #oldest = 1_000;
  readonly #open = new Set<{ readonly wish: SandboxWatchWish; readonly end: (end: SandboxWatchEnd) => void }>();

  /** Where the collection is. */
  get version(): string {
    return String(this.#number);
  }

  /** How many watches stand. */
  get open(): number {
    return this.#open.size;
  }

  stands(sandbox: SandboxReading, isNew: boolean): void {
    this.#say({ t: "stands", sandbox, isNew });
  }

  gone(sandbox: SandboxReading): void {
    this.#say({ t: "gone", name: sandbox.name, last: sandbox });
  }

  /** A change that watches do not hear, as while they are cut off. */
  unheard(change: () => void): void {
    const open = [...this.#open];
    this.#open.clear();
    change();
    for (const one of open) this.#open.add(one);
  }

  /** Something else in the cluster moves the version on, and watches hear a bookmark. */
  bookmark(): void {
    this.#say({ t: "bookmark" });
  }

  /** Forgets what came before now. Watches that stand are told so by an ERROR in the stream. */
  forget(): void {
    this.#history = [];
    this.#oldest = this.#number;
    for (const one of [...this.#open])
      one.end(ended("the watch said 410: too old", { isExpired: true, mustList: true }));
  }

  /** Ends the watches that stand, as a server does from time to time. */
  cut(): void {
    for (const one of [...this.#open]) one.end(ended("the server ended it", {}));
  }

  watch(wish: SandboxWatchWish, signal: AbortSignal): Promise<SandboxWatchEnd> {
    this.asked.push(wish.from);
    const refusal = this.refusals.shift();
    const from = Number(wish.from);
    if (refusal === "expired" || from < this.#oldest) {
      return Promise.resolve(ended("the watch was answered 410: too old", { isExpired: true, mustList: true }));
    }
    if (refusal === "expired in stream") {
      wish.onOpen();
      return Promise.resolve(ended("the watch said 410: too old", { isExpired: true, mustList: true }));
    }
    if (refusal === "broken") return Promise.resolve(ended("connect ECONNREFUSED", { isFault: true }));
    return new Promise((resolve) => {
      const one = {
        wish,
        end: (end: SandboxWatchEnd) => {
          this.#open.delete(one);
          signal.removeEventListener("abort", onAbort);
          resolve(end);
        },
      };
      const onAbort = (): void => one.end(ended("aborted", { isFault: true }));
      signal.addEventListener("abort", onAbort, { once: true });
      this.#open.add(one);
      wish.onOpen();
      for (const said of this.#history.filter(({ number }) => number > from)) wish.onNews(said);
      if (signal.aborted) onAbort();
    });
  }

  #say(news: DistributiveOmit<SandboxNews, "version">): void {
    this.#number += 1;
    const said = { ...news, version: String(this.#number), number: this.#number } as Said;
    this.#history.push(said);
    for (const { wish } of [...this.#open]) wish.onNews(said);
  }
}

type DistributiveOmit<Union, Key extends PropertyKey> = Union extends unknown ? Omit<Union, Key> : never;

function ended(why: string, more: Partial<SandboxWatchEnd>): SandboxWatchEnd {
  return { why, isFault: false, isExpired: false, mustList: false, retryAfterMs: undefined, ...more };
}
