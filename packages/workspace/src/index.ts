export type { TunnelEvent } from "./calls/connect-port.ts";
export { WorkspaceExecutions } from "./calls/executions.ts";
export type { CommandInput } from "./calls/feeding.ts";
export {
  type FileOperation,
  type MakeDirectoryWish,
  type MoveWish,
  type RemoveWish,
  type WatchWish,
  WorkspaceFiles,
} from "./calls/files.ts";
export { type AttachmentEnd, WorkspaceSessions } from "./calls/sessions.ts";
export { Terminal, type TerminalEvent, type TerminalVerb, type TerminalWish } from "./calls/terminal.ts";
export type { TerminalInput } from "./calls/typing.ts";
export type { ChronicleEvent, WatchItem } from "./chronicle/chronicle-event.ts";
export { Chronicles } from "./chronicle/chronicles.ts";
export * from "./deps.ts";
export * from "./events/workspace-event.ts";
export type { EventSubscription, WorkspaceEvents } from "./events/workspace-events.ts";
export type { Fencing, StartFencing, StopFencing } from "./fence/fencing.ts";
export { listTemplates, type TemplateSummary } from "./inventory/list-templates.ts";
export { readSummary } from "./inventory/read-summary.ts";
export type { WatchFilter, WorkspaceNews } from "./inventory/watch/change.ts";
export { watchStopped } from "./inventory/watch/workspace-feed.ts";
export { WorkspaceWatches } from "./inventory/watch/workspace-watches.ts";
export { listWorkspaces } from "./list-workspaces.ts";
export * from "./ports/cluster.ts";
export * from "./ports/executions.ts";
export * from "./ports/files.ts";
export * from "./ports/guest.ts";
export * from "./ports/sessions.ts";
export * from "./ports/tunnel.ts";
export { readThrough } from "./read-through.ts";
export { isHandleOver, isNotSent } from "./refusals.ts";
export { FreshLook } from "./state/fresh-look.ts";
export { LateCreates } from "./state/late-creates.ts";
export { LiveCalls, type LiveCounts } from "./state/live-calls.ts";
export type { BoundGuest, GoneWhy, StateName, WorkspaceState } from "./state/workspace-state.ts";
export { reportOf as quiesceReportOf } from "./verbs/quiesce.ts";
export {
  type Identity,
  type PodFacts,
  type PodHealth,
  viewWithHealth,
  type WireState,
  type WorkspaceSummary,
  type WorkspaceView,
} from "./view.ts";
export * from "./wishes.ts";
export { type StopReports, Workspace } from "./workspace.ts";
