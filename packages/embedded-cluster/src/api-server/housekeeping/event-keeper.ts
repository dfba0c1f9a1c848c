import type { KubeObject } from "../../resource-api.ts";
import { parse } from "../registry/object-text.ts";
import type { Registry } from "../registry/registry.ts";
import type { Target } from "../registry/target.ts";
import { findType, type ResourceType } from "../resource-types.ts";

/** As in the real server: an event is kept for an hour. */
const lifetimeMs = 3_600_000;

/** The real server has its store's size for a bound. */
export const defaultEventsMax = 10_000;

/** So many are deleted before requests have their turn: each is a write that waits for the disk. */
const atOnce = 4;

interface Kept {
  readonly target: Target;
  readonly createdAt: number;
}

/** Bounds the events that are kept, by age and by number: the one that was written longest ago goes first. */
export class EventKeeper {
  readonly #registry: Registry;
  readonly #most: number;
  readonly #type: ResourceType;
  /** By uid, the one written longest ago first. */
  readonly #kept = new Map<string, Kept>();

  constructor(registry: Registry, most: number) {
    const type = findType({ group: "", version: "v1", plural: "events" });
    if (type === undefined) throw new Error("events are not served");
    this.#registry = registry;
    this.#most = most;
    this.#type = type;
    const there = Array.from(registry.list(type, undefined).bodies(), (body) => parse(body).metadata);
    there.sort((a, b) => Number(a.resourceVersion) - Number(b.resourceVersion));
    for (const metadata of there) this.#keep(metadata);
  }

  /** Tells whether there are more than may be. */
  get isOverfull(): boolean {
    return this.#kept.size > this.#most;
  }

  noticed(object: KubeObject, deleted: boolean): void {
    if (object.kind !== this.#type.kind) return;
    this.#kept.delete(object.metadata.uid ?? "");
    if (!deleted) this.#keep(object.metadata);
  }

  /** Deletes some of those that are too many, the oldest first. */
  trim(): void {
    const tooMany = this.#kept.size - this.#most;
    if (tooMany > 0) this.#delete(this.#first(Math.min(atOnce, tooMany), () => true));
  }

  /** Deletes some of those that are old; true where there may be more. */
  expire(now: Date): boolean {
    const old = this.#first(atOnce, ({ createdAt }) => now.getTime() - createdAt > lifetimeMs);
    this.#delete(old);
    return old.length === atOnce;
  }

  #first(count: number, wanted: (event: Kept) => boolean): readonly Kept[] {
    const found: Kept[] = [];
    for (const event of this.#kept.values()) {
      if (wanted(event)) found.push(event);
      if (found.length === count) break;
    }
    return found;
  }

  /** One that is deleted already, and waits for whoever put a finalizer on it, is nobody's to delete again. */
  #keep({ uid = "", name, namespace = "", creationTimestamp = "", deletionTimestamp }: KubeObject["metadata"]): void {
    if (deletionTimestamp !== undefined) return;
    const target = { type: this.#type, namespace, name };
    this.#kept.set(uid, { target, createdAt: Date.parse(creationTimestamp) });
  }

  #delete(events: readonly Kept[]): void {
    for (const { target } of events) this.#registry.delete(target);
  }
}
