export type { ListenAddress, ServiceConfig } from "./config/service-config.ts";
export { type ControlPlane, startControlPlane } from "./control-plane.ts";
export { WorkspaceRegistry } from "./registry.ts";
export { StartFailure } from "./start-failure.ts";
export { Watching } from "./watching.ts";
