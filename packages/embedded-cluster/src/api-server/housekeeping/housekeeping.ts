import type { Logger } from "pino";
import { ApiStatusError } from "../../api-status-error.ts";
import type { KubeObject } from "../../resource-api.ts";
import { parse } from "../registry/object-text.ts";
import type { Registry } from "../registry/registry.ts";
import type { Change } from "../store/rows.ts";
import { ClaimProtection } from "./claim-protection.ts";
import { defaultEventsMax, EventKeeper } from "./event-keeper.ts";
import { GarbageCollector } from "./garbage-collector.ts";
import { WorkQueue } from "./work-queue.ts";

const eventSweepMs = 300_000;

export interface HousekeepingOptions {
  readonly registry: Registry;
  readonly log: Logger;
  readonly now: () => Date;
  /** Absent: yes. */
  readonly sweepsEvents?: boolean;
  /** How many events are kept. */
  readonly eventsMax?: number | undefined;
}

export interface Housekeeping {
  /** Nothing waits to be looked at. */
  readonly isIdle: boolean;
  stop(): void;
}

/**
 * Starts what a kube-controller-manager does for the objects served here: garbage collection, claim protection,
 * emptying of deleted namespaces; and the bounds of events.
 */
export function startHousekeeping(options: HousekeepingOptions): Housekeeping {
  const { registry, log, now, sweepsEvents = true, eventsMax = defaultEventsMax } = options;
  const queue = new WorkQueue((key, error) => {
    // What changed or went meanwhile is looked at again for that very change.
    if (error instanceof ApiStatusError && (error.code === 404 || error.code === 409)) return "done";
    log.error({ err: error, key }, "housekeeping failed; it is tried again");
    return "again";
  });
  const collector = new GarbageCollector(registry, (uid) => queue.add(`uid/${uid}`, () => collector.look(uid)));
  const claims = new ClaimProtection(registry, (namespace, name) =>
    queue.add(`claim/${namespace}/${name}`, () => claims.look(namespace, name)),
  );
  const events = new EventKeeper(registry, eventsMax);
  const empty = (namespace: string): void =>
    queue.add(`namespace/${namespace}`, () => {
      if (emptyNamespace(registry, namespace)) empty(namespace);
    });
  const noticed = (object: KubeObject, before: KubeObject | undefined, deleted: boolean): void => {
    collector.noticed(object, before, deleted);
    claims.noticed(object, deleted);
    events.noticed(object, deleted);
    if (events.isOverfull) queue.add("events/number", () => events.trim());
    const namespace = namespaceToEmpty(registry, object, deleted);
    if (namespace !== undefined) empty(namespace);
  };

  const unsubscribe = registry.onChange((change: Change) => {
    const before = change.prev === undefined ? undefined : parse(change.prev);
    noticed(parse(change.body), before, change.type === "DELETED");
  });
  if (events.isOverfull) queue.add("events/number", () => events.trim());
  // What a killed process left half done.
  for (const uid of registry.unsettledUids()) {
    const found = registry.findByUid(uid);
    if (found !== undefined) noticed(found.object, undefined, false);
  }
  const expire = (): void => {
    if (events.expire(now())) queue.add("events/age", expire);
  };
  const sweep = sweepsEvents ? setInterval(() => queue.add("events/age", expire), eventSweepMs) : undefined;

  return {
    get isIdle() {
      return queue.isIdle;
    },
    stop: () => {
      clearInterval(sweep);
      unsubscribe();
      queue.stop();
    },
  };
}

/** The namespace that a change may have made ready to be emptied or removed. */
function namespaceToEmpty(registry: Registry, object: KubeObject, deleted: boolean): string | undefined {
  const { name, namespace, deletionTimestamp } = object.metadata;
  if (object.kind === "Namespace") return deletionTimestamp !== undefined && !deleted ? name : undefined;
  return deleted && namespace !== undefined && registry.isTerminating(namespace) ? namespace : undefined;
}

/** So many are deleted before requests have their turn: each is a write that waits for the disk. */
const atOnce = 4;

/** Deletes some of what is in a namespace that is being deleted, and the namespace once it is empty. True: there may be more to delete. */
function emptyNamespace(registry: Registry, namespace: string): boolean {
  if (!registry.isTerminating(namespace)) return false;
  const some = registry.standingIn(namespace, atOnce);
  for (const { target } of some) registry.delete(target, { propagationPolicy: "Background" });
  if (some.length === atOnce) return true;
  registry.finishNamespace(namespace);
  return false;
}
