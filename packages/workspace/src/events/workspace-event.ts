import type { BootId, ExecutionId, PodUid, SandboxUid } from "@holdfast/contract";
import type { HoldfastError } from "@holdfast/errors";
import type { StateName } from "../state/workspace-state.ts";

/** One guest agent process: the pod, and the process in it where it has said which it is (L40). */
export interface GuestIdentity {
  readonly podUid: PodUid;
  readonly bootId: BootId | undefined;
}

/** What a handle noticed about its guest without having asked for it (L41, L43). */
export type WorkspaceEvent =
  | {
      /** Another pod runs on the disk, or another process in the same pod. */
      readonly t: "pod_replaced" | "container_restarted";
      readonly sandboxUid: SandboxUid;
      readonly previous: GuestIdentity;
      readonly current: GuestIdentity;
    }
  | {
      readonly t: "cancellation_unconfirmed";
      readonly executionId: ExecutionId;
      readonly agent: AgentHealth;
      readonly evidence: Evidence;
      /** The guest that the command was started on. */
      readonly previous: GuestIdentity;
      /** The guest by now; undefined where none is known. */
      readonly current: GuestIdentity | undefined;
      /** What the caller gets. */
      readonly error: HoldfastError;
    };

/** `retiring` only where the guest says so; `unreachable` for anything that is no answer. */
export type AgentHealth = "ok" | "retiring" | "unreachable";

/** What is known of the guest that a command was started on. `same_guest`: nothing says that it is another. */
export type Evidence = "unknown" | "pod_gone" | "pod_replaced" | "container_restarted" | "same_guest";

/** What a subscriber hears. `gap`: it did not read in time, and missed as many. */
export type Heard =
  | { readonly t: "event"; readonly sequence: number; readonly at: number; readonly event: WorkspaceEvent }
  | { readonly t: "gap"; readonly missed: number };

/** How far a start has come. What went by too fast to be seen is left out. */
export type StartStep = "created" | "scheduled" | "image_pulling" | "pod_running" | "bound" | "probed";

/** What a handle comes to: another state, an event, or a step of its start. */
export type HandleNews =
  | { readonly t: "entered"; readonly state: StateName }
  | { readonly t: "event"; readonly event: WorkspaceEvent }
  | { readonly t: "progress"; readonly step: StartStep };
