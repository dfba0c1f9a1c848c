import type { BootId, HolderEpoch, PodUid, SandboxUid, WorkspaceId } from "@holdfast/contract";
import type { ContainerTermination, Mode, PodReading } from "./ports/cluster.ts";
import type { GuestHealth, ResourceUse } from "./ports/guest.ts";
import type { Handle } from "./state/handle.ts";
import type { LiveCounts } from "./state/live-calls.ts";
import type { StateName } from "./state/workspace-state.ts";
import type { Origin } from "./wishes.ts";

/** The states that callers see. */
export type WireState = "starting" | "running" | "suspending" | "suspended" | "deleting" | "not_ready";

/** A workspace as it stands, as far as it has been confirmed. */
export interface WorkspaceView {
  readonly id: WorkspaceId;
  readonly state: WireState;
  readonly transition: {
    /** The fact that moved it last, in the words of the state table. */
    readonly cause: string;
    /** Milliseconds since the epoch; undefined on one that is read through. */
    readonly at?: number | undefined;
    /** What is being waited for, for people. */
    readonly waitingFor?: string | undefined;
    /** Of the call that moved it; undefined where that carried none, or no call did. */
    readonly epoch?: HolderEpoch | undefined;
  };
  /** The stored epoch as it was last read here; undefined when it cannot be read as a number. */
  readonly holderEpoch?: HolderEpoch | undefined;
  /** What the call found or made; undefined when the workspace is only read through. */
  readonly origin?: Origin | undefined;
  readonly identity: Identity;
  readonly template?: string | undefined;
  readonly templateRevision?: string | undefined;
  /** That is the revision of the template as it was last read here (L32). */
  readonly templateCurrent: boolean;
  /** Where the disk is mounted in the guest. */
  readonly root?: string | undefined;
  readonly pod?: PodFacts | undefined;
  /** What this process holds open in it for its callers. */
  readonly live: LiveCounts;
}

/** Who is who (L40). */
export interface Identity {
  readonly sandboxUid?: SandboxUid | undefined;
  readonly claimUids: Readonly<Record<string, string>>;
  readonly podUid?: PodUid | undefined;
  /** Shown only beside the pod that reported it. */
  readonly bootId?: BootId | undefined;
}

export interface PodFacts {
  readonly name: string;
  readonly image: string;
  readonly node: string | undefined;
  readonly restartCount: number;
  readonly lastTermination: string | undefined;
  readonly termination: ContainerTermination | undefined;
  /** Known only where its guest was asked, and could tell. */
  readonly use?: ResourceUse | undefined;
}

/** What the guest of this pod said of itself. */
export type PodHealth = GuestHealth & { readonly podUid: PodUid };

/** One workspace of the inventory, from its object alone. */
export interface WorkspaceSummary {
  readonly id: WorkspaceId;
  readonly mode: Mode;
  readonly template: string;
  readonly createdAt: Date;
  /** Undefined when it was never changed. */
  readonly modeChangedAt: Date | undefined;
  /** 0 when none is stored, undefined when it cannot be read as a number. */
  readonly holderEpoch: number | undefined;
  readonly sandboxUid: SandboxUid;
}

const wireStates: Readonly<Record<StateName, WireState>> = {
  opening: "starting",
  resuming: "starting",
  active: "running",
  unbound: "not_ready",
  closing: "suspending",
  suspending: "suspending",
  suspended: "suspended",
  deleting: "deleting",
  gone: "deleting",
};

/** Said until a recipe knows better. */
const waits: Readonly<Partial<Record<StateName, string>>> = {
  opening: "the object to be read",
  resuming: "a pod that is ready, and its guest",
  closing: "the suspend to be written",
  suspending: "the pod to be gone",
  deleting: "the object, its pod and its disk to be gone",
};

/** The handle's workspace as callers see it. */
export function viewOf(ws: Handle): WorkspaceView {
  const { state, known, transition } = ws;
  const bound = state.t === "active" || state.t === "closing" ? state.bound : undefined;
  const why = state.t === "unbound" ? state.why : undefined;
  return {
    id: ws.id,
    state: wireStates[state.t],
    transition: {
      cause: transition.cause,
      at: transition.at,
      epoch: transition.epoch,
      waitingFor: ws.waitingFor ?? why ?? waits[state.t],
    },
    origin: ws.origin,
    identity: {
      sandboxUid: known?.sandboxUid,
      claimUids: ws.claimUids,
      podUid: bound?.pod.uid,
      bootId: bound?.bootId,
    },
    template: known?.template,
    templateRevision: known?.revision,
    templateCurrent: known?.revision !== undefined && known.revision === ws.templateRevision,
    root: known?.root,
    holderEpoch: known?.holderEpoch,
    pod: bound && podFactsOf(bound.pod),
    live: ws.live.of(ws.id),
  };
}

export function podFactsOf(pod: PodReading): PodFacts {
  const { name, image, node, restartCount, lastTermination, termination } = pod;
  return { name, image, node, restartCount, lastTermination, termination };
}

/** The view beside what its guest says. What the guest of another pod said is nothing about this one, and is left out (L40). */
export function viewWithHealth(
  view: WorkspaceView,
  health: PodHealth | undefined,
): { readonly view: WorkspaceView; readonly health: PodHealth | undefined } {
  if (health === undefined || health.podUid !== view.identity.podUid) return { view, health: undefined };
  if (!view.pod || !health.use) return { view, health };
  return { view: { ...view, pod: { ...view.pod, use: health.use } }, health };
}
