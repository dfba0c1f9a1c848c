import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { DataDirInUseError, readHolderPid } from "./data-dir-lock.ts";

const schemaVersion = 1;

const sqliteBusy = 5;

// `objects` is the state, `changes` the watch log; both are written in one transaction.
// `prev` is the object before the change: it lets a page be read as of an older version, and tells a selector watch
// that an object has left its selection.
const schema = `
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS objects (
  resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
  uid TEXT NOT NULL UNIQUE, rv INTEGER NOT NULL, body TEXT NOT NULL,
  PRIMARY KEY (resource, namespace, name)
);
CREATE TABLE IF NOT EXISTS owners (
  owner TEXT NOT NULL, uid TEXT NOT NULL,
  PRIMARY KEY (owner, uid)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS owners_by_uid ON owners (uid);
CREATE TABLE IF NOT EXISTS changes (
  rv INTEGER PRIMARY KEY, type TEXT NOT NULL,
  resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
  body TEXT NOT NULL, prev TEXT
);
CREATE INDEX IF NOT EXISTS changes_by_resource ON changes (resource, rv);
CREATE INDEX IF NOT EXISTS changes_by_key ON changes (resource, namespace, name, rv);
`;

/**
 * Opens the database of a data directory and takes its lock, which lasts until the database is closed or the process
 * ends, however it ends. Throws DataDirInUseError, naming `dataDir`, when it is held.
 */
export function openDatabase(directory: string, dataDir: string): DatabaseSync {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const path = join(directory, "objects.sqlite");
  const mark = join(directory, "holder.pid");
  const db = new DatabaseSync(path, { timeout: 0 });
  try {
    // Before journal_mode: in exclusive mode the write-ahead log needs no shared memory, and the lock is never let go.
    db.exec("PRAGMA locking_mode = EXCLUSIVE");
    db.exec("PRAGMA journal_mode = WAL");
    db.exec("PRAGMA synchronous = FULL");
    db.exec("BEGIN EXCLUSIVE");
    db.exec("COMMIT");
    chmodSync(path, 0o600);
    writeFileSync(mark, `${process.pid}\n`, { mode: 0o600 });
    prepareSchema(db);
    giveBackFreeSpace(db);
    return db;
  } catch (error) {
    db.close();
    if (isBusy(error)) throw new DataDirInUseError(dataDir, readHolderPid(mark));
    throw error;
  }
}

/** A database that is kept nowhere, for tests that need a cluster thousands of times. */
export function openMemoryDatabase(): DatabaseSync {
  const db = new DatabaseSync(":memory:");
  prepareSchema(db);
  return db;
}

function prepareSchema(db: DatabaseSync): void {
  const row = db.prepare("PRAGMA user_version").get();
  const found = row?.user_version;
  if (found !== 0 && found !== schemaVersion) {
    throw new Error(`The object store has schema ${String(found)}; this release reads ${schemaVersion}.`);
  }
  db.exec(`BEGIN; ${schema} PRAGMA user_version = ${schemaVersion}; COMMIT`);
}

/** A file is not made smaller for what is small. */
const worthGivingBackBytes = 16 * 1024 * 1024;

/**
 * Rewrites a file that is mostly free. While it is in use, what is deleted leaves room for what is written next, so a
 * file is never larger than what it once held.
 */
function giveBackFreeSpace(db: DatabaseSync): void {
  const read = (pragma: string): number => Number(db.prepare(`PRAGMA ${pragma}`).get()?.[pragma]);
  const [free, all, pageBytes] = [read("freelist_count"), read("page_count"), read("page_size")];
  if (free * pageBytes < worthGivingBackBytes || free * 2 < all) return;
  try {
    db.exec("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)"); // without the second, the small file stays in the write-ahead log
  } catch (error) {
    // It needs room for a copy, here and where temporary files go; without, the file stays as large.
    if (!wantsRoom(error)) throw error;
  }
}

/** No memory, I/O error, full, cannot open: a quota, a limit and a read-only folder for temporary files are not told as a full disk. */
const sqliteRoomless = [7, 10, 13, 14];

function wantsRoom(error: unknown): boolean {
  if (!(error instanceof Error) || !("errcode" in error)) return false;
  return typeof error.errcode === "number" && sqliteRoomless.includes(error.errcode & 0xff);
}

function isBusy(error: unknown): boolean {
  if (!(error instanceof Error) || !("errcode" in error)) return false;
  return typeof error.errcode === "number" && (error.errcode & 0xff) === sqliteBusy;
}
