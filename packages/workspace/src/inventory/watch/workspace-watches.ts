import { watchLingerMs } from "@holdfast/contract";
import { isWatched, type WatchFilter, type WorkspaceNews } from "./change.ts";
import { Watcher } from "./watcher.ts";
import { type FeedDeps, WorkspaceFeed, watchStopped } from "./workspace-feed.ts";

/**
 * Watches of the inventory: any number of them over one list and one watch of the cluster, which begin with the first watcher and end
 * a while after the last.
 */
export class WorkspaceWatches {
  readonly #deps: FeedDeps;
  #feed: WorkspaceFeed | undefined;
  #cancelLinger: (() => void) | undefined;
  #isClosed = false;

  constructor(deps: FeedDeps) {
    this.#deps = deps;
  }

  /** How many watch. */
  get size(): number {
    return this.#feed?.watchers ?? 0;
  }

  /** True while the cluster is watched. */
  get isWatching(): boolean {
    return this.#feed !== undefined;
  }

  /**
   * Everything, then what changes; with the version of a bookmark only what came after it, or `restarted` and everything where that
   * is not to be had. A reader that is too slow hears `restarted` and everything, too.
   */
  async *watch(filter: WatchFilter, from: string | undefined, caller: AbortSignal): AsyncGenerator<WorkspaceNews> {
    caller.throwIfAborted();
    const watcher = new Watcher(filter, from);
    const feed = this.#join(watcher);
    let said = from;
    let owesBookmark = false;
    try {
      for (;;) {
        const { standing } = watcher;
        if (feed.isListed && (standing === "fresh" || standing === "lost")) {
          const { workspaces, version } = feed.begin(watcher);
          if (standing === "lost") yield { t: "restarted" };
          for (const workspace of workspaces) if (isWatched(filter, workspace)) yield { t: "added", workspace };
          said = version;
          owesBookmark = false;
          yield { t: "bookmark", version };
          continue;
        }
        const news = watcher.take();
        if (news) {
          owesBookmark = true;
          yield news;
          continue;
        }
        const { version } = watcher;
        if (standing === "live" && version !== undefined && version !== said && (owesBookmark || watcher.bookmarkDue)) {
          said = version;
          owesBookmark = false;
          watcher.bookmarkDue = false;
          yield { t: "bookmark", version };
          continue;
        }
        await watcher.woken(caller);
      }
    } finally {
      this.#leave(feed, watcher);
    }
  }

  /** Ends every watch. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelLinger?.();
    await this.#feed?.close(watchStopped());
    this.#feed = undefined;
  }

  #join(watcher: Watcher): WorkspaceFeed {
    if (this.#isClosed) throw watchStopped();
    this.#cancelLinger?.();
    this.#cancelLinger = undefined;
    this.#feed ??= new WorkspaceFeed(this.#deps);
    this.#feed.join(watcher);
    return this.#feed;
  }

  #leave(feed: WorkspaceFeed, watcher: Watcher): void {
    feed.leave(watcher);
    if (feed.watchers > 0 || feed !== this.#feed || this.#isClosed) return;
    // Those who come and go one after another do not list the cluster each time.
    this.#cancelLinger = this.#deps.clock.schedule(feed.hasFailed ? 0 : watchLingerMs, () => {
      this.#cancelLinger = undefined;
      this.#feed = undefined;
      void feed.close(watchStopped()); // Never rejects: nobody is left to hear of it.
    });
  }
}
