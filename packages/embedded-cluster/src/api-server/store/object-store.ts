import type { DatabaseSync, StatementSync } from "node:sqlite";
import { PastReads } from "./past-reads.ts";
import {
  type Change,
  type ChangeType,
  firstOf,
  integer,
  mapped,
  type ObjectKey,
  type StoredObject,
  text,
  toChange,
  toObject,
} from "./rows.ts";

/** How much of the change log is kept for watches and pages to resume from. */
export interface HistoryLimits {
  readonly changes: number;
  readonly bytes: number;
}

/**
 * Objects and their change log over one SQLite database. Every call is synchronous, so calls are serial by nature; a
 * write and its log entry are one transaction, so that a process killed at any moment leaves a state that was once true.
 */
export class ObjectStore {
  readonly #db: DatabaseSync;
  readonly #limits: HistoryLimits;
  readonly #statements = new Map<string, StatementSync>();
  /** Objects as they stood at a version that is not compacted. */
  readonly past: PastReads;
  readonly #pins = new Set<{ readonly at: number }>();
  #revision: number;
  #compacted: number;
  /** Entries and bytes in the change log. */
  #logged: { changes: number; bytes: number };

  constructor(db: DatabaseSync, limits: HistoryLimits) {
    this.#db = db;
    this.#limits = limits;
    this.#revision = Math.max(1, this.#readMeta("revision")); // 0 has a meaning of its own in list and watch
    this.#compacted = this.#readMeta("compacted");
    this.past = new PastReads({
      sql: (query) => this.#sql(query),
      revision: () => this.#revision,
      get: (key) => this.get(key),
    });
    const row = this.#sql(
      "SELECT count(*) n, coalesce(sum(octet_length(body) + coalesce(octet_length(prev), 0)), 0) b FROM changes",
    ).get();
    this.#logged =
      row === undefined ? { changes: 0, bytes: 0 } : { changes: integer(row, "n"), bytes: integer(row, "b") };
  }

  /** The version of the last change; every write makes the next one. */
  get revision(): number {
    return this.#revision;
  }

  /** Changes up to and including this version can no longer be read. */
  get compacted(): number {
    return this.#compacted;
  }

  get(key: ObjectKey): StoredObject | undefined {
    const row = this.#sql("SELECT * FROM objects WHERE resource = ? AND namespace = ? AND name = ?").get(
      key.resource,
      key.namespace,
      key.name,
    );
    return row === undefined ? undefined : toObject(row);
  }

  getByUid(uid: string): StoredObject | undefined {
    const row = this.#sql("SELECT * FROM objects WHERE uid = ?").get(uid);
    return row === undefined ? undefined : toObject(row);
  }

  /** Objects that name this uid as an owner. */
  dependentsOf(uid: string): StoredObject[] {
    const rows = this.#sql("SELECT o.* FROM owners w JOIN objects o ON o.uid = w.uid WHERE w.owner = ?").all(uid);
    return rows.map(toObject);
  }

  /** The uids of all objects that have an owner or are being deleted: what a crash may have left half done. */
  unsettledUids(): string[] {
    const rows = this.#sql(
      `SELECT uid FROM owners UNION SELECT uid FROM objects WHERE instr(body, '"deletionTimestamp":') > 0`,
    ).all();
    return rows.map((row) => text(row, "uid"));
  }

  /** Objects of a resource and namespace whose JSON holds a text. */
  mentioning(resource: string, namespace: string, wanted: string): StoredObject[] {
    return this.#sql("SELECT * FROM objects WHERE resource = ? AND namespace = ? AND instr(body, ?) > 0")
      .all(resource, namespace, wanted)
      .map(toObject);
  }

  /** How many objects of any resource stand in a namespace. */
  countInNamespace(namespace: string): number {
    const row = this.#sql("SELECT count(*) n FROM objects WHERE namespace = ?").get(namespace);
    return row === undefined ? 0 : integer(row, "n");
  }

  /** Some of the objects in a namespace that are not being deleted; none where all are. */
  standingInNamespace(namespace: string, limit: number): StoredObject[] {
    const isStanding = "body ->> '$.metadata.deletionTimestamp' IS NULL";
    return this.#sql(`SELECT * FROM objects WHERE namespace = ? AND ${isStanding} LIMIT ?`)
      .all(namespace, limit)
      .map(toObject);
  }

  /**
   * Keeps what is needed to read at version `at` from being trimmed, until the answer is called. A compaction by hand
   * forgets it all the same.
   */
  pin(at: number): () => void {
    const pin = { at };
    this.#pins.add(pin);
    return () => this.#pins.delete(pin);
  }

  /** Changes of a resource after a version, oldest first: some at a time, and whether these are the last there are. */
  changesAfter(
    rv: number,
    resource: string,
    limit: number,
  ): { readonly items: readonly Change[]; readonly isAll: boolean } {
    const rows = this.#sql("SELECT * FROM changes WHERE resource = ? AND rv > ? ORDER BY rv").iterate(resource, rv);
    return firstOf(mapped(rows, toChange), limit, (change) => change.body.length + (change.prev?.length ?? 0));
  }

  /**
   * Writes one change. `bodyAt` gives the object's text at the version that the change is given; `owners` are the
   * uids that it names as owners.
   */
  write(
    type: ChangeType,
    key: ObjectKey,
    uid: string,
    owners: readonly string[],
    prev: string | undefined,
    bodyAt: (rv: number) => string,
  ): Change {
    const rv = this.#revision + 1;
    const change: Change = { ...key, rv, type, body: bodyAt(rv), prev };
    // Counted as SQLite counts them, or what is added and taken off would drift apart until nothing is kept.
    const size = Buffer.byteLength(change.body) + Buffer.byteLength(prev ?? "");
    const logged = { changes: this.#logged.changes + 1, bytes: this.#logged.bytes + size };
    let compacted = this.#compacted;

    this.#inTransaction(() => {
      this.#applyToObjects(change, uid, owners);
      this.#sql(
        "INSERT INTO changes (rv, type, resource, namespace, name, body, prev) VALUES (?, ?, ?, ?, ?, ?, ?)",
      ).run(rv, type, key.resource, key.namespace, key.name, change.body, prev ?? null);
      this.#writeMeta("revision", rv);
      if (this.#isOverfull(logged)) compacted = this.#trimLog(logged);
    });
    this.#revision = rv;
    this.#compacted = compacted;
    this.#logged = logged;
    return change;
  }

  /** Forgets the change log: what an operator's compaction does, and how tests make versions too old. */
  compact(): void {
    this.#inTransaction(() => {
      this.#db.exec("DELETE FROM changes");
      this.#writeMeta("compacted", this.#revision);
    });
    this.#compacted = this.#revision;
    this.#logged = { changes: 0, bytes: 0 };
  }

  close(): void {
    this.#db.close();
  }

  #inTransaction(work: () => void): void {
    this.#db.exec("BEGIN IMMEDIATE");
    try {
      work();
      this.#db.exec("COMMIT");
    } catch (error) {
      // SQLite ends the transaction itself after some failures, a full disk among them.
      if (this.#db.isTransaction) this.#db.exec("ROLLBACK");
      throw error;
    }
  }

  #applyToObjects(change: Change, uid: string, owners: readonly string[]): void {
    this.#sql("DELETE FROM owners WHERE uid = ?").run(uid);
    if (change.type === "DELETED") {
      this.#sql("DELETE FROM objects WHERE uid = ?").run(uid);
      return;
    }
    this.#sql(
      `INSERT INTO objects (resource, namespace, name, uid, rv, body) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (resource, namespace, name) DO UPDATE SET rv = excluded.rv, body = excluded.body`,
    ).run(change.resource, change.namespace, change.name, uid, change.rv, change.body);
    for (const owner of new Set(owners)) this.#sql("INSERT INTO owners (owner, uid) VALUES (?, ?)").run(owner, uid);
  }

  #isOverfull(logged: { changes: number; bytes: number }): boolean {
    // An eighth of slack, so that trimming is rare and takes a batch.
    return logged.changes > this.#limits.changes * 1.125 || logged.bytes > this.#limits.bytes * 1.125;
  }

  /** Drops the oldest changes until the log is within its limits, and returns the last version dropped. */
  #trimLog(logged: { changes: number; bytes: number }): number {
    let last = this.#compacted;
    const pinned = Math.min(...[...this.#pins].map(({ at }) => at)); // infinite where nothing is pinned
    const rows = this.#sql(
      "SELECT rv, octet_length(body) + coalesce(octet_length(prev), 0) AS size FROM changes ORDER BY rv",
    ).iterate();
    for (const row of rows) {
      if (logged.changes <= this.#limits.changes && logged.bytes <= this.#limits.bytes) break;
      if (integer(row, "rv") > pinned) break;
      logged.changes -= 1;
      logged.bytes -= integer(row, "size");
      last = integer(row, "rv");
    }
    this.#sql("DELETE FROM changes WHERE rv <= ?").run(last);
    this.#writeMeta("compacted", last);
    return last;
  }

  #readMeta(key: string): number {
    const row = this.#sql("SELECT value FROM meta WHERE key = ?").get(key);
    return row === undefined ? 0 : integer(row, "value");
  }

  #writeMeta(key: string, value: number): void {
    this.#sql("INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value").run(
      key,
      value,
    );
  }

  #sql(query: string): StatementSync {
    let statement = this.#statements.get(query);
    if (statement === undefined) {
      statement = this.#db.prepare(query);
      this.#statements.set(query, statement);
    }
    return statement;
  }
}
