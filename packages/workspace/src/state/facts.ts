import type { PodUid } from "@holdfast/contract";
import type { BoundGuest, GoneWhy, WorkspaceState } from "./workspace-state.ts";

/** Where a re-read showed that a workspace stands, after a start that failed. */
export type Standing = Extract<
  WorkspaceState,
  { readonly t: "unbound" | "suspending" | "suspended" | "deleting" | "gone" }
>;

/** What a recipe has confirmed, in its own turn. */
export type Fact =
  | { readonly t: "bound"; readonly bound: BoundGuest }
  | { readonly t: "startFailed"; readonly standing: Standing }
  | { readonly t: "suspendBegan" }
  | { readonly t: "suspendRefused" }
  | { readonly t: "suspendAccepted" }
  | { readonly t: "suspendUnknown" }
  | { readonly t: "podGone" }
  | { readonly t: "suspendOvertaken" }
  | { readonly t: "resumeBegan" }
  | { readonly t: "deleteBegan" }
  | { readonly t: "deleteRefused" }
  | { readonly t: "deleted" }
  | { readonly t: "deletionSeen" }
  | { readonly t: "vanished"; readonly why: Extract<GoneWhy, "absent" | "replaced"> };

/** Learned outside a recipe, so it may be late: observed, and dropped if `was` is not the pod we hold. */
export type News =
  | { readonly t: "guestMoved"; readonly was: PodUid | undefined; readonly bound: BoundGuest }
  | { readonly t: "guestLost"; readonly was: PodUid | undefined; readonly why: string }
  | { readonly t: "suspendedElsewhere"; readonly was: PodUid | undefined }
  | { readonly t: "deletionSeen"; readonly was: PodUid | undefined }
  | {
      readonly t: "vanished";
      readonly was: PodUid | undefined;
      readonly why: Extract<GoneWhy, "absent" | "replaced">;
    };

export type FactName = Fact["t"] | News["t"];
