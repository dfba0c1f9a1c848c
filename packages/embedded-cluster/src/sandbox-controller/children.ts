import type { KubeObject, ResourceApi } from "../resource-api.ts";
import type { ObjectCache } from "./object-cache.ts";

/** What the steps of a pass read and write with. Pods and Services are read from caches, so a read may be late. */
export interface Cluster {
  readonly api: ResourceApi;
  readonly sandboxes: ObjectCache;
  readonly pods: ObjectCache;
  readonly services: ObjectCache;
}

/** A Sandbox as a pass sees it; annotations that the pass itself changes are written here too. */
export interface Pass {
  readonly cluster: Cluster;
  sandbox: KubeObject;
  readonly hash: string;
}
