import type { Logger } from "pino";
import type { NodeFaultPoints } from "../faults/node-faults.ts";
import type { ResourceApi } from "../resource-api.ts";
import type { AddressPool } from "./address-pool.ts";
import type { RecordEvent } from "./event-recorder.ts";
import type { LeftOvers } from "./left-overs.ts";
import type { LaunchKit } from "./pod-launch.ts";
import type { BackoffSpan } from "./restart-backoff.ts";
import type { Slots } from "./slots.ts";
import type { VolumeStore } from "./volume-store.ts";

/** What all pods of a node share. */
export interface PodDependencies {
  readonly api: ResourceApi;
  readonly nodeName: string;
  readonly kit: LaunchKit;
  readonly addresses: AddressPool;
  readonly volumes: VolumeStore;
  readonly leftOvers: LeftOvers;
  readonly faults: NodeFaultPoints;
  readonly record: RecordEvent;
  /** Bounds the exec probes that run at once: twenty pods that start together need the processors themselves. */
  readonly execProbes: Slots;
  /** Bounds the containers that are set up at once: hundreds together would leave the API, in the same process, no time. */
  readonly starts: Slots;
  readonly backoff: BackoffSpan;
  readonly log: Logger;
}
