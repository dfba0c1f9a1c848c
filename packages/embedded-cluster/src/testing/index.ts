/** For tests of other rooms: the cluster in memory, its stand-in node, and the fault knobs. */
export { ApiStatusError } from "../api-status-error.ts";
export { LostReplyError, LostWatchError } from "../faults/fate.ts";
export * from "../faults/fault-rule.ts";
export * from "../faults/faults.ts";
export * from "../faults/node-faults.ts";
export { type MemoryCluster, type MemoryClusterOptions, startMemoryCluster } from "../memory/memory-cluster.ts";
export { memoryToken } from "../memory/memory-listener.ts";
export type { NodeStep, StandInNode, StepName } from "../memory/stand-in-node.ts";
export type { KubeObject, ObjectRef, ResourceApi, ResourceRef, WatchEvent } from "../resource-api.ts";
