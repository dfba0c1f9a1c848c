import type { BootId, HolderEpoch, PodUid, SandboxUid } from "@holdfast/contract";
import type { PodReading } from "../ports/cluster.ts";
import type { Guest } from "../ports/guest.ts";

/** A guest that proved itself, with the pod that it was reached in. */
export interface BoundGuest {
  readonly guest: Guest;
  readonly pod: PodReading;
  readonly sandboxUid: SandboxUid;
  readonly features: readonly string[];
  /** The first reply is the baseline. */
  readonly bootId: BootId;
  /** The holder epoch that this guest confirmed to this handle; 0 where none was stored. It may stand higher by now, never lower. */
  readonly fenced: HolderEpoch;
}

/** Where a handle stands. What a state may use lives in it, so that it cannot be asked for wrongly. (docs/design/lifecycle.md) */
export type WorkspaceState =
  /** Nothing is known yet. */
  | { readonly t: "opening" }
  | { readonly t: "active"; readonly bound: BoundGuest }
  /** Running, but no pod is bound: it ended by itself, is draining, or was never reached. `lost` is the pod that was held. */
  | { readonly t: "unbound"; readonly lost: PodUid | undefined; readonly why: string }
  /** A suspend is about to be written, and can be taken back: to `bound`, or to unbound because of `why`. */
  | { readonly t: "closing"; readonly bound: BoundGuest | undefined; readonly why: string }
  /** Written, seen or unknown; not confirmed. */
  | { readonly t: "suspending"; readonly leaving: BoundGuest | undefined }
  /** The pod has been seen gone. */
  | { readonly t: "suspended" }
  | { readonly t: "resuming" }
  | { readonly t: "deleting" }
  /** The handle is over; the next Open makes a new one. */
  | { readonly t: "gone"; readonly why: GoneWhy };

export type GoneWhy = "deleted" | "absent" | "replaced" | "start_failed" | "delete_refused";

export type StateName = WorkspaceState["t"];
