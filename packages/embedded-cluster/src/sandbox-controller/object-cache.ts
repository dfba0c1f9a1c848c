import type { Logger } from "pino";
import { isApiStatus } from "../api-status-error.ts";
import { type Clock, pause, systemClock } from "../clock.ts";
import type { KubeObject, ResourceApi, ResourceRef } from "../resource-api.ts";
import { controllerOf } from "./names.ts";

const firstRetryMs = 100;
const longestRetryMs = 5_000;

/** A copy of one collection, kept by list and watch. What is read from it must not be changed. */
export class ObjectCache {
  readonly #api: ResourceApi;
  readonly #resource: ResourceRef;
  readonly #onChange: (object: KubeObject) => void;
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #objects = new Map<string, KubeObject>();
  /** Keys of objects by their controller's uid. */
  readonly #controlled = new Map<string, Set<string>>();
  /** The version up to which the list and the watch have told. */
  #seenVersion = 0;
  readonly #synced = Promise.withResolvers<void>();

  constructor(
    api: ResourceApi,
    resource: ResourceRef,
    log: Logger,
    onChange: (object: KubeObject) => void,
    clock: Clock = systemClock,
  ) {
    this.#clock = clock;
    this.#api = api;
    this.#resource = resource;
    this.#log = log;
    this.#onChange = onChange;
  }

  /** Resolves when the first list is in. */
  get synced(): Promise<void> {
    return this.#synced.promise;
  }

  get(namespace: string, name: string): KubeObject | undefined {
    return this.#objects.get(`${namespace}/${name}`);
  }

  /** The objects whose controller has this uid. */
  controlledBy(uid: string): KubeObject[] {
    return [...(this.#controlled.get(uid) ?? [])].flatMap((key) => this.#objects.get(key) ?? []);
  }

  /** Takes in an object that was just created, so that the next reader need not wait for its event. */
  learn(created: KubeObject): void {
    // What the watch has passed already it has also told, perhaps that the object is gone again.
    if (versionOf(created) > this.#seenVersion) this.#put(created);
  }

  /** Follows the collection until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    let retryMs = firstRetryMs;
    while (!signal.aborted) {
      try {
        const { items, resourceVersion } = await this.#api.list(this.#resource);
        this.#replaceAll(items);
        this.#seenVersion = Number(resourceVersion);
        this.#synced.resolve();
        for await (const event of this.#api.watch(this.#resource, resourceVersion, signal)) {
          retryMs = firstRetryMs;
          this.#seenVersion = versionOf(event.object);
          if (event.type === "DELETED") this.#remove(event.object);
          else if (event.type !== "BOOKMARK") this.#put(event.object);
        }
      } catch (error) {
        // 410 only means that the list has to be read again.
        if (!isApiStatus(error, 410)) this.#log.warn({ err: error, resource: this.#resource.plural }, "watch failed");
      }
      if (signal.aborted) return;
      await pause(this.#clock, retryMs, signal);
      retryMs = Math.min(retryMs * 2, longestRetryMs);
    }
  }

  #replaceAll(items: readonly KubeObject[]): void {
    const listed = new Set(items.map(keyOf));
    for (const [key, object] of this.#objects) if (!listed.has(key)) this.#remove(object);
    for (const item of items) this.#put(item);
  }

  #put(object: KubeObject): void {
    const key = keyOf(object);
    const before = this.#objects.get(key);
    if (before !== undefined) this.#unindex(key, before);
    this.#objects.set(key, object);
    const controller = controllerOf(object)?.uid;
    if (controller !== undefined) {
      const keys = this.#controlled.get(controller) ?? new Set();
      this.#controlled.set(controller, keys.add(key));
    }
    this.#onChange(object);
  }

  #remove(object: KubeObject): void {
    const key = keyOf(object);
    const before = this.#objects.get(key);
    if (before !== undefined) this.#unindex(key, before);
    this.#objects.delete(key);
    this.#onChange(object);
  }

  #unindex(key: string, object: KubeObject): void {
    const controller = controllerOf(object)?.uid ?? "";
    const keys = this.#controlled.get(controller);
    keys?.delete(key);
    if (keys?.size === 0) this.#controlled.delete(controller);
  }
}

function versionOf(object: KubeObject): number {
  return Number(object.metadata.resourceVersion);
}

function keyOf(object: KubeObject): string {
  return `${object.metadata.namespace ?? ""}/${object.metadata.name}`;
}
