import { expired, expiredContinue, tooLargeResourceVersion } from "../refusals.ts";
import { type ResourceType, storageNameOf } from "../resource-types.ts";
import type { ObjectKey, ObjectStore, StoredObject } from "../store/object-store.ts";
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

export interface ListPage {
  /** Each item as JSON text. */
  readonly bodies: string[];
  readonly resourceVersion: number;
  readonly continue: string | undefined;
  /** Known only where nothing is selected. */
  readonly remaining: number | undefined;
}

const listBatch = 500;

/** Reads one page of a collection as it stood at one version: the current one, or that of the first page. */
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

  const found: StoredObject[] = [];
  let after: ObjectKey | undefined = token === undefined ? undefined : { resource, ...token };
  let more = true;
  // One more than the page holds, to know whether another follows.
  while (more && found.length <= limit) {
    const batch = store.pageAt(at, resource, namespace, after, Math.min(listBatch, limit + 1));
    more = batch.length > 0;
    after = batch.at(-1);
    for (const item of batch) {
      if (found.length <= limit && (matches === undefined || matches(JSON.parse(item.body)))) found.push(item);
    }
  }
  const page = found.length > limit ? found.slice(0, limit) : found;
  const last = found.length > limit ? page.at(-1) : undefined;
  return {
    bodies: page.map((item) => item.body),
    resourceVersion: at,
    continue:
      last === undefined ? undefined : encodeContinueToken({ rv: at, namespace: last.namespace, name: last.name }),
    remaining: last === undefined || matches !== undefined ? undefined : store.countAt(at, resource, namespace, last),
  };
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
