import type { SQLOutputValue, StatementSync } from "node:sqlite";

/** The key of one object. `resource` is a storage name; `namespace` is "" for cluster-scoped objects. */
export interface ObjectKey {
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
}

export interface StoredObject extends ObjectKey {
  readonly uid: string;
  readonly rv: number;
  /** The object as JSON text. */
  readonly body: string;
}

export type ChangeType = "ADDED" | "MODIFIED" | "DELETED";

export interface Change extends ObjectKey {
  readonly rv: number;
  readonly type: ChangeType;
  /** The object after the change; for DELETED its last state, at the version of the deletion. */
  readonly body: string;
  /** The object before the change; undefined for ADDED. */
  readonly prev: string | undefined;
}

export type Position = Pick<ObjectKey, "namespace" | "name">;

/** Gives the prepared statement of a query; the same query, the same statement. */
export type Sql = (query: string) => StatementSync;

type Row = Record<string, SQLOutputValue>;

export const text = (row: Row, column: string): string => String(row[column]);
export const integer = (row: Row, column: string): number => Number(row[column]);

export const toObject = (row: Row): StoredObject => ({
  resource: text(row, "resource"),
  namespace: text(row, "namespace"),
  name: text(row, "name"),
  uid: text(row, "uid"),
  rv: integer(row, "rv"),
  body: text(row, "body"),
});

const changeTypes: Record<string, ChangeType> = { ADDED: "ADDED", MODIFIED: "MODIFIED", DELETED: "DELETED" };

export const toChange = (row: Row): Change => {
  const type = changeTypes[text(row, "type")];
  if (type === undefined) throw new Error(`The change log holds an unknown type at version ${integer(row, "rv")}.`);
  return {
    rv: integer(row, "rv"),
    type,
    resource: text(row, "resource"),
    namespace: text(row, "namespace"),
    name: text(row, "name"),
    body: text(row, "body"),
    prev: row.prev === null ? undefined : text(row, "prev"),
  };
};

/** What is read at once, however large its parts are: objects have up to 1.5 MiB. */
const readCharacters = 1024 * 1024;

/** The first of them, up to a number or a size, and whether there are no more. One at least, where there is one. */
export function firstOf<T>(
  source: Iterable<T>,
  limit: number,
  sizeOf: (item: T) => number,
): { readonly items: T[]; readonly isAll: boolean } {
  const items: T[] = [];
  let size = 0;
  for (const item of source) {
    if (items.length >= limit || size >= readCharacters) return { items, isAll: false };
    items.push(item);
    size += sizeOf(item);
  }
  return { items, isAll: true };
}

export function* mapped<T, U>(source: Iterable<T>, to: (item: T) => U): Generator<U> {
  for (const item of source) yield to(item);
}
