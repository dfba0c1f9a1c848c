import { expired, expiredContinue, tooLargeResourceVersion } from "../refusals.ts";
import { type ResourceType, storageNameOf } from "../resource-types.ts";
import type { ObjectStore } from "../store/object-store.ts";
import type { ObjectKey, Position } from "../store/rows.ts";
import { type ContinueToken, decodeContinueToken, encodeContinueToken } from "./continue-token.ts";
import { compileSelection, type Selection } from "./selectors.ts";

export interface ListWish extends Selection {
  readonly limit?: number | undefined;
  readonly continue?: string | undefined;
  /** An exact version to read at. */
  readonly exactVersion?: number | undefined;
  /** Refuse to answer from a version before this one. */
  readonly notOlderThan?: number | undefined;
}

/** What a list says of itself. */
export interface ListHead {
  readonly resourceVersion: number;
  readonly continue: string | undefined;
  /** Known only where nothing is selected. */
  readonly remaining: number | undefined;
}

/** One page of a collection, as it stood at one version. */
export interface ListPage extends ListHead {
  /** Which objects are on it, in their order. */
  readonly keys: readonly Position[];
  /** Their JSON text, where all of it is small; a large page is read object by object. */
  readonly small: readonly string[] | undefined;
  /** Reads each item as JSON text, one in memory at a time. Throws 410 where a compaction was faster. */
  bodies(): Iterable<string>;
  /** Keeps what is needed to read on later, until the answer is called. Throws 410 where it is gone already. */
  pin(): () => void;
}

/** Up to this size (in characters) a page is kept from the reading that finds out what is on it. */
const smallCharacters = 512 * 1024;

/** Finds one page of a collection as it stood at one version: the current one, or that of the first page. */
export function listPage(
  store: ObjectStore,
  type: ResourceType,
  namespace: string | undefined,
  wish: ListWish,
): ListPage {
  const matches = compileSelection(type, wish);
  const resource = storageNameOf(type);
  const token = wish.continue === undefined || wish.continue === "" ? undefined : decodeContinueToken(wish.continue);
  const at = versionToListAt(store, wish, token);
  const limit = wish.limit === undefined || wish.limit <= 0 ? Number.POSITIVE_INFINITY : wish.limit;

  const keys: Position[] = [];
  let kept: string[] | undefined = [];
  let size = 0;
  let more = false;
  const take = ({ namespace, name }: Position): boolean => {
    more = keys.length >= limit;
    if (!more) keys.push({ namespace, name });
    return !more;
  };
  for (const item of store.past.scanAt(at, resource, namespace, token)) {
    if (matches !== undefined && !matches(JSON.parse(item.body))) continue;
    if (!take(item)) break;
    size += item.body.length;
    if (size > smallCharacters) kept = undefined;
    kept?.push(item.body);
    if (kept === undefined && matches === undefined) break; // the rest need not be read to be counted
  }
  if (kept === undefined && matches === undefined && !more) {
    for (const key of store.past.scanKeysAt(at, resource, namespace, keys.at(-1))) if (!take(key)) break;
  }
  const last = more ? keys.at(-1) : undefined;
  return {
    keys,
    small: kept,
    bodies: () =>
      kept ??
      bodiesAt(
        store,
        at,
        keys.map((key) => ({ resource, ...key })),
      ),
    pin: () => {
      assertReadable(store, at);
      return store.pin(at);
    },
    resourceVersion: at,
    continue:
      last === undefined ? undefined : encodeContinueToken({ rv: at, namespace: last.namespace, name: last.name }),
    remaining:
      last === undefined || matches !== undefined ? undefined : store.past.countAt(at, resource, namespace, last),
  };
}

function* bodiesAt(store: ObjectStore, at: number, keys: readonly ObjectKey[]): Generator<string> {
  for (const key of keys) {
    assertReadable(store, at);
    const body = store.past.bodyAt(at, key);
    if (body !== undefined) yield body;
  }
}

function assertReadable(store: ObjectStore, at: number): void {
  if (at < store.compacted) throw expired("The resourceVersion for the provided list is too old.");
}

function versionToListAt(store: ObjectStore, wish: ListWish, token: ContinueToken | undefined): number {
  const current = store.revision;
  const pageVersion = token?.rv === -1 ? current : token?.rv;
  const wanted = pageVersion ?? wish.exactVersion;
  const newest = wanted ?? wish.notOlderThan ?? 0;
  if (newest > current) throw tooLargeResourceVersion(newest, current);
  if (wanted === undefined) return current;
  if (wanted < store.compacted) {
    if (token !== undefined) throw expiredContinue(encodeContinueToken({ ...token, rv: -1 }));
    throw expired("The resourceVersion for the provided list is too old.");
  }
  return wanted;
}
