import type { HoldfastError } from "@holdfast/errors";
import type { BoundGuest } from "./workspace-state.ts";

/** What a look for the guest came to. `same`: the pod is the one that was not reached, or nothing could be read. */
export type Rebind =
  | { readonly t: "moved"; readonly bound: BoundGuest }
  | { readonly t: "same" }
  | { readonly t: "refused"; readonly error: HoldfastError };
