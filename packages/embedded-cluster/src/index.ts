export type { Intercept, InterceptedRequest, Verdict } from "./api-server/http/intercept.ts";
export { DataDirInUseError } from "./api-server/store/data-dir-lock.ts";
export { guestAgentImage } from "./default-template.ts";
export { type EmbeddedCluster, type EmbeddedClusterOptions, startEmbeddedCluster } from "./embedded-cluster.ts";
export type { AgentProgram, Isolation } from "./local-node/index.ts";
