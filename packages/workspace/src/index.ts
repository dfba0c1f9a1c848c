export * from "./deps.ts";
export { listWorkspaces } from "./list-workspaces.ts";
export * from "./ports/cluster.ts";
export * from "./ports/guest.ts";
export { readThrough } from "./read-through.ts";
export type { BoundGuest, GoneWhy, StateName, WorkspaceState } from "./state/workspace-state.ts";
export type { Identity, PodFacts, WireState, WorkspaceSummary, WorkspaceView } from "./view.ts";
export * from "./wishes.ts";
export { Workspace } from "./workspace.ts";
