import type { Logger } from "pino";
import type { ResourceApi } from "../resource-api.ts";
import { startHousekeeping } from "./housekeeping/housekeeping.ts";
import { inProcessApi } from "./in-process-api.ts";
import { Registry } from "./registry/registry.ts";
import type { ObjectStore } from "./store/object-store.ts";

/** An API server without a wire: the registry over a store, with its housekeeping. */
export interface ApiCore {
  readonly registry: Registry;
  readonly api: ResourceApi;
  /** Tells whether housekeeping has nothing to do. */
  readonly isTidy: boolean;
  /** Forgets the change log, as an operator's compaction does. */
  compact(): void;
  /** Stops the housekeeping and closes the store. */
  close(): void;
}

export interface ApiCoreOptions {
  readonly store: ObjectStore;
  readonly log: Logger;
  readonly now: () => Date;
  /** Whether events are swept away when they are old; needs a timer. */
  readonly sweepsEvents: boolean;
  /** How many events are kept. */
  readonly eventsMax?: number | undefined;
}

export function startApiCore({ store, log, now, sweepsEvents, eventsMax }: ApiCoreOptions): ApiCore {
  const registry = new Registry(store, now);
  const housekeeping = startHousekeeping({ registry, log, now, sweepsEvents, eventsMax });
  return {
    registry,
    api: inProcessApi(registry),
    get isTidy() {
      return housekeeping.isIdle;
    },
    compact: () => store.compact(),
    close: () => {
      housekeeping.stop();
      store.close();
    },
  };
}
