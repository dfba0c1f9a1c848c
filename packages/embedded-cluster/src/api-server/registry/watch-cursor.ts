import { tooOldResourceVersion } from "../refusals.ts";
import type { ObjectStore } from "../store/object-store.ts";
import type { Change, ObjectKey } from "../store/rows.ts";
import type { Matches } from "./selectors.ts";

/** Where a watch begins: after a version, with everything that is there now, or with whatever comes next. */
export type WatchStart =
  | { readonly t: "after"; readonly rv: number }
  | { readonly t: "now"; readonly notOlderThan?: number }
  | { readonly t: "newest" };

export interface CursorEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  /** The object as JSON text. */
  readonly body: string;
}

interface CursorOptions {
  readonly store: ObjectStore;
  readonly onChange: (listener: (change: Change) => void) => () => void;
  readonly resource: string;
  readonly namespace: string | undefined;
  readonly matches: Matches | undefined;
  readonly start: WatchStart;
}

/**
 * A position in the change log of one type. It holds no queue: a slow reader falls behind in the log, and once the log
 * has been compacted past it, reading throws 410.
 */
export class WatchCursor {
  readonly #options: CursorOptions;
  readonly #stopListening: () => void;
  /** The version at which the objects of the start were listed. */
  readonly listedVersion: number;
  /** Everything up to this version has been read. */
  #position: number;
  /** The version and the last key of the initial listing, while it lasts. */
  #listing: { readonly at: number; after: ObjectKey | undefined } | undefined;
  /** Nothing of this type is unread, however far the log has moved on for others. */
  #caughtUp = false;
  #wake: (() => void) | undefined;

  constructor(options: CursorOptions) {
    this.#options = options;
    const { start, store } = options;
    this.listedVersion = store.revision;
    this.#position = start.t === "after" ? start.rv : store.revision;
    this.#listing = start.t === "now" ? { at: store.revision, after: undefined } : undefined;
    this.#stopListening = options.onChange((change) => this.#noticed(change));
  }

  /** A version that a later watch may resume from without missing anything. */
  get resumeVersion(): number {
    return this.#caughtUp ? this.#options.store.revision : this.#position;
  }

  /** Tells whether objects that stood at the start are yet to be given. */
  get isListing(): boolean {
    return this.#listing !== undefined;
  }

  /**
   * The next events, or none when there is nothing new (see `changed`). Reads at most `limit` log entries, and never
   * both of the start's objects and of what came after.
   */
  read(limit: number): CursorEvent[] {
    while (!this.#caughtUp) {
      const wasListing = this.isListing;
      const events = wasListing ? this.#readListing(limit) : this.#readLog(limit);
      if (events.length > 0 || (wasListing && !this.isListing)) return events;
    }
    return [];
  }

  /** Resolves when there may be something to read, or when the signal aborts. */
  changed(signal: AbortSignal): Promise<void> {
    if (!this.#caughtUp || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const done = (): void => {
        signal.removeEventListener("abort", done);
        this.#wake = undefined;
        resolve();
      };
      signal.addEventListener("abort", done, { once: true });
      this.#wake = done;
    });
  }

  close(): void {
    this.#stopListening();
    this.#wake?.();
  }

  #noticed(change: Change): void {
    if (change.resource !== this.#options.resource) return;
    // What was compacted while this cursor was idle was never of its type.
    if (this.#caughtUp) this.#position = change.rv - 1;
    this.#caughtUp = false;
    this.#wake?.();
  }

  #readListing(limit: number): CursorEvent[] {
    const listing = this.#listing;
    if (listing === undefined) return [];
    const { store, resource, namespace, matches } = this.#options;
    if (listing.at < store.compacted) throw tooOldResourceVersion(listing.at, store.compacted);
    const page = store.past.pageAt(listing.at, resource, namespace, listing.after, limit);
    listing.after = page.at(-1);
    if (page.length === 0) this.#listing = undefined;
    return page
      .filter((item) => matches === undefined || matches(JSON.parse(item.body)))
      .map((item) => ({ type: "ADDED", body: item.body }));
  }

  #readLog(limit: number): CursorEvent[] {
    const { store, resource } = this.#options;
    if (this.#position < store.compacted) throw tooOldResourceVersion(this.#position, store.compacted);
    const { items: changes, isAll } = store.changesAfter(this.#position, resource, limit);
    const last = changes.at(-1);
    if (last === undefined || isAll) {
      this.#position = store.revision;
      this.#caughtUp = true;
    } else {
      this.#position = last.rv;
    }
    return changes.flatMap((change) => this.#eventOf(change));
  }

  /** With a selector, entering the selection is ADDED and leaving it is DELETED. */
  #eventOf(change: Change): CursorEvent[] {
    const { namespace, matches } = this.#options;
    if (namespace !== undefined && change.namespace !== namespace) return [];
    if (matches === undefined) return [{ type: change.type, body: change.body }];
    const was = change.prev !== undefined && matches(JSON.parse(change.prev));
    const is = change.type !== "DELETED" && matches(JSON.parse(change.body));
    if (is) return [{ type: was ? "MODIFIED" : "ADDED", body: change.body }];
    if (!was || change.prev === undefined) return [];
    return [{ type: "DELETED", body: change.type === "DELETED" ? change.body : atVersion(change.prev, change.rv) }];
  }
}

/** The object as it was, at the version of the change that took it out of the selection. */
function atVersion(body: string, rv: number): string {
  const object = JSON.parse(body);
  object.metadata.resourceVersion = String(rv);
  return JSON.stringify(object);
}
