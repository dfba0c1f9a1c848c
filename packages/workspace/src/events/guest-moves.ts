import type { BootId, PodUid } from "@holdfast/contract";
import type { BoundGuest } from "../state/workspace-state.ts";
import type { GuestIdentity, WorkspaceEvent } from "./workspace-event.ts";

/**
 * Remembers which guest a handle held last, and says when another one stands in its place though no suspend or resume of this handle
 * brought it there (L41).
 */
export class GuestMoves {
  #last: GuestIdentity | undefined;

  /** A pod was dialled in a start and has not proved itself: where another one is bound in the end, it was replaced meanwhile. */
  dialled(podUid: PodUid): void {
    this.#last ??= { podUid, bootId: undefined };
  }

  /** A suspend or wake of this handle is known applied: what is bound next is its own doing. */
  expected(): void {
    this.#last = undefined;
  }

  /** A guest is bound. Returns what is to be told, at most once per guest. */
  bound({ pod, bootId, sandboxUid }: BoundGuest): WorkspaceEvent | undefined {
    const previous = this.#last;
    const current = { podUid: pod.uid, bootId: known(bootId) };
    this.#last = current;
    if (!previous) return undefined;
    if (previous.podUid !== current.podUid) return { t: "pod_replaced", sandboxUid, previous, current };
    const isRestart =
      previous.bootId !== undefined && current.bootId !== undefined && previous.bootId !== current.bootId;
    return isRestart ? { t: "container_restarted", sandboxUid, previous, current } : undefined;
  }
}

/** A guest that names no boot id is never said to have restarted. */
function known(bootId: BootId): BootId | undefined {
  return bootId === "" ? undefined : bootId;
}
