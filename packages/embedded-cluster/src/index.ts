export type { Intercept, InterceptedRequest, Verdict } from "./api-server/http/intercept.ts";
export { DataDirInUseError } from "./api-server/store/data-dir-lock.ts";
export { defaultTemplate, guestAgentImage } from "./default-template.ts";
export { type EmbeddedCluster, type EmbeddedClusterOptions, startEmbeddedCluster } from "./embedded-cluster.ts";
export { HttpResourceApi } from "./http-resource-api/http-resource-api.ts";
export { readKubeconfig, type ServerAccess } from "./http-resource-api/server-access.ts";
export { type AgentProgram, type Isolation, type LocalNode, startLocalNode } from "./local-node/index.ts";
export type { KubeObject, ResourceApi, ResourceRef } from "./resource-api.ts";
