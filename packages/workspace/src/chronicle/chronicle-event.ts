import type { SandboxUid, WorkspaceId } from "@holdfast/contract";
import type { StartStep, WorkspaceEvent } from "../events/workspace-event.ts";
import type { WorkspaceView } from "../view.ts";

/** What becomes of one workspace, in the order in which this process learned of it. */
export type ChronicleEvent =
  | { readonly t: "changed"; readonly view: WorkspaceView }
  | { readonly t: "progress"; readonly step: StartStep; readonly message: string }
  | { readonly t: "noticed"; readonly event: WorkspaceEvent; readonly sandboxUid: SandboxUid | undefined }
  | { readonly t: "epoch_changed"; readonly previous: number; readonly current: number }
  | { readonly t: "gone"; readonly replaced: boolean };

/** What a watcher hears. `snapshot` with undefined: it does not exist. `gap`: events were missed, and a snapshot follows. */
export type WatchItem = { readonly at: number; readonly sequence: number } & (
  | { readonly t: "snapshot"; readonly id: WorkspaceId; readonly view: WorkspaceView | undefined }
  | { readonly t: "gap" }
  | { readonly t: "event"; readonly event: ChronicleEvent }
);

export interface ChronicleEntry {
  readonly sequence: number;
  readonly at: number;
  readonly event: ChronicleEvent;
}

/** Two views that tell a watcher the same. What is waited for is words, and no event. */
export function tellsTheSame(one: WorkspaceView, other: WorkspaceView): boolean {
  return (
    one.state === other.state &&
    one.identity.sandboxUid === other.identity.sandboxUid &&
    one.identity.podUid === other.identity.podUid &&
    one.identity.bootId === other.identity.bootId &&
    one.templateRevision === other.templateRevision
  );
}
