export type { Isolation } from "./isolation.ts";
export { type LocalNode, type LocalNodeOptions, startLocalNode } from "./local-node.ts";
export type { AgentProgram } from "./pod-root.ts";
export { readContainerLog } from "./read-container-log.ts";
