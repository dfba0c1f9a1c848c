import { isDeepStrictEqual } from "node:util";
import { isObject, type JsonObject } from "../../json.ts";

/** A patch that does not apply. The real server does not say which operation failed, nor why. */
export class PatchFailed extends Error {}

/** `copy` operations have made too much. */
export class CopiesTooLarge extends Error {}

const maxCopiedCharacters = 3 * 1024 * 1024;

type Container = JsonObject | unknown[];

/**
 * Applies a JSON Patch in place as a kube-apiserver does. It is not RFC 6902 in everything: `replace` adds a member that
 * is absent, `copy` of one makes null, and a `test` for null holds for what is absent. Answers the document, which is
 * another one where the root was replaced. Throws PatchFailed, the document half changed.
 */
export function applyJsonPatch(document: unknown, operations: readonly unknown[]): unknown {
  let root = document;
  let copied = 0;
  for (const operation of operations) {
    if (!isObject(operation)) throw new PatchFailed();
    const { op, value = null } = operation;
    const path = pointerIn(operation, "path");
    switch (op) {
      case "add":
        add(placeOf(root, path), value);
        break;
      case "remove":
        remove(placeOf(root, path));
        break;
      case "replace":
        if (path === "") root = containerFrom(value);
        else replace(placeOf(root, path), value);
        break;
      case "move": {
        const from = placeOf(root, pointerIn(operation, "from"));
        const moved = read(from);
        remove(from);
        add(placeOf(root, path), moved);
        break;
      }
      case "copy": {
        const source = read(placeOf(root, pointerIn(operation, "from")));
        const place = placeOf(root, path);
        copied += JSON.stringify(source)?.length ?? 0;
        if (copied > maxCopiedCharacters) throw new CopiesTooLarge(String(copied));
        add(place, structuredClone(source) ?? null);
        break;
      }
      case "test":
        if (!isDeepStrictEqual((path === "" ? root : read(placeOf(root, path))) ?? null, value))
          throw new PatchFailed();
        break;
      default:
        throw new PatchFailed();
    }
  }
  return root;
}

interface Place {
  readonly container: Container;
  readonly key: string;
}

function pointerIn(operation: JsonObject, member: "path" | "from"): string {
  const pointer = operation[member];
  if (typeof pointer !== "string") throw new PatchFailed();
  return pointer;
}

/** The container that a pointer's last part is in. What stands before the first slash is not looked at. */
function placeOf(root: unknown, pointer: string): Place {
  const [, ...parts] = pointer.split("/").map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
  const key = parts.pop();
  if (key === undefined) throw new PatchFailed();
  let container = containerFrom(root);
  for (const part of parts) container = containerFrom(read({ container, key: part }));
  return { container, key };
}

function containerFrom(value: unknown): Container {
  if (isObject(value) || Array.isArray(value)) return value;
  throw new PatchFailed();
}

/** The value at a place: undefined for an absent member. Throws for an index that a list does not have. */
function read({ container, key }: Place): unknown {
  if (Array.isArray(container)) return container[indexIn(key, container.length)];
  return Object.hasOwn(container, key) ? container[key] : undefined;
}

function add({ container, key }: Place, value: unknown): void {
  if (!Array.isArray(container)) setMember(container, key, value);
  else if (key === "-") container.push(value);
  else container.splice(indexIn(key, container.length + 1), 0, value);
}

function replace({ container, key }: Place, value: unknown): void {
  if (Array.isArray(container)) container[indexIn(key, container.length)] = value;
  else setMember(container, key, value);
}

function remove({ container, key }: Place): void {
  if (Array.isArray(container)) container.splice(indexIn(key, container.length), 1);
  else if (!Object.hasOwn(container, key)) throw new PatchFailed();
  else delete container[key];
}

/** A member like any other, whatever its name. */
function setMember(container: JsonObject, key: string, value: unknown): void {
  Object.defineProperty(container, key, { value, writable: true, enumerable: true, configurable: true });
}

/** An index counts from the end where it is negative. */
function indexIn(key: string, length: number): number {
  const index = /^-?\d+$/u.test(key) ? Number(key) : Number.NaN;
  const found = index < 0 ? index + length : index;
  if (!(found >= 0 && found < length)) throw new PatchFailed();
  return found;
}
