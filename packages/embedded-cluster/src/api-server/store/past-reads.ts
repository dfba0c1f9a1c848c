import {
  firstOf,
  integer,
  type ObjectKey,
  type Position,
  type Sql,
  type StoredObject,
  text,
  toObject,
} from "./rows.ts";

const inRange = `resource = :resource AND (:namespace IS NULL OR namespace = :namespace)
    AND (namespace, name) > (:afterNamespace, :afterName)`;

// What stood at version `at`: the objects unchanged since, and what the first change after `at` found of each other one.
const unchangedSince = `FROM objects WHERE ${inRange} AND rv <= :at`;
const changedSince = `FROM changes c WHERE ${inRange} AND rv > :at AND prev IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM changes e WHERE e.resource = c.resource AND e.namespace = c.namespace
                      AND e.name = c.name AND e.rv > :at AND e.rv < c.rv)`;

const rangeOf = (at: number, resource: string, namespace: string | undefined, after: Position | undefined) => ({
  resource,
  at,
  namespace: namespace ?? null,
  afterNamespace: after?.namespace ?? "",
  afterName: after?.name ?? "",
});

function byPosition(a: Position, b: Position): number {
  if (a.namespace !== b.namespace) return a.namespace < b.namespace ? -1 : 1;
  return a.name < b.name ? -1 : 1;
}

const keyBatch = 256;

interface Source {
  readonly sql: Sql;
  /** The version of the last change. */
  readonly revision: () => number;
  readonly get: (key: ObjectKey) => StoredObject | undefined;
}

/**
 * Reads objects as they stood at a version, from what stands now and what the log has of before. The caller has
 * checked that the version is not compacted.
 */
export class PastReads {
  readonly #source: Source;

  constructor(source: Source) {
    this.#source = source;
  }

  /**
   * Reads every object after a key, in key order, as it stood at version `at`, one in memory at a time. Nothing is
   * written before it has ended.
   */
  *scanAt(
    at: number,
    resource: string,
    namespace: string | undefined,
    after: Position | undefined,
  ): Generator<StoredObject> {
    if (at === this.#source.revision()) {
      const where = rangeOf(at, resource, namespace, after);
      const columns = "resource, namespace, name, uid, rv, body";
      const rows = this.#source.sql(`SELECT ${columns} ${unchangedSince} ORDER BY namespace, name`).iterate(where);
      for (const row of rows) yield toObject(row);
      return;
    }
    for (const key of this.scanKeysAt(at, resource, namespace, after)) {
      const body = this.bodyAt(at, key);
      if (body !== undefined) yield { ...key, uid: "", rv: at, body };
    }
  }

  /** As scanAt, without reading the objects. */
  *scanKeysAt(
    at: number,
    resource: string,
    namespace: string | undefined,
    after: Position | undefined,
  ): Generator<ObjectKey> {
    let last = after;
    for (let more = true; more; ) {
      const keys = this.#keysAt(at, resource, namespace, last);
      yield* keys;
      last = keys.at(-1);
      more = keys.length === keyBatch;
    }
  }

  #keysAt(at: number, resource: string, namespace: string | undefined, after: Position | undefined): ObjectKey[] {
    const where = { ...rangeOf(at, resource, namespace, after), limit: keyBatch };
    return [unchangedSince, changedSince]
      .flatMap((part) =>
        this.#source.sql(`SELECT namespace, name ${part} ORDER BY namespace, name LIMIT :limit`).all(where),
      )
      .map((row) => ({ resource, namespace: text(row, "namespace"), name: text(row, "name") }))
      .sort(byPosition)
      .slice(0, keyBatch);
  }

  /** An object as it stood at version `at`; undefined where there was none. */
  bodyAt(at: number, { resource, namespace, name }: ObjectKey): string | undefined {
    if (at < this.#source.revision()) {
      const changed = this.#source
        .sql(
          "SELECT prev FROM changes WHERE resource = ? AND namespace = ? AND name = ? AND rv > ? ORDER BY rv LIMIT 1",
        )
        .get(resource, namespace, name, at);
      if (changed !== undefined) return changed.prev === null ? undefined : text(changed, "prev");
    }
    return this.#source.get({ resource, namespace, name })?.body;
  }

  /** As scanAt, but at most `limit` of them, and no more once they are large together; none only where there is none. */
  pageAt(
    at: number,
    resource: string,
    namespace: string | undefined,
    after: Position | undefined,
    limit: number,
  ): StoredObject[] {
    return firstOf(this.scanAt(at, resource, namespace, after), limit, (item) => item.body.length).items;
  }

  /** How many objects stood after a key at version `at`. */
  countAt(at: number, resource: string, namespace: string | undefined, after: Position): number {
    const where = rangeOf(at, resource, namespace, after);
    return [unchangedSince, changedSince]
      .map((part) => this.#source.sql(`SELECT count(*) n ${part}`).get(where))
      .reduce((sum, row) => sum + (row === undefined ? 0 : integer(row, "n")), 0);
  }
}
