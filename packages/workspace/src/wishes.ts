import type { SandboxUid } from "@holdfast/contract";
import type { StartFencing, StopFencing } from "./fence/fencing.ts";
import type { QuiesceResult, StoppedProcess } from "./ports/guest.ts";

/** What happens to a workspace that this call woke or created and that then could not be started (L19). */
export type OnStartFailure = "suspend_if_woken" | "leave";

/** What a call found or made (L9). */
export type Origin = "created" | "adopted_running" | "resumed" | "already_open";

export interface OpenWish {
  /** Undefined: it carries no epoch. */
  readonly fencing?: StartFencing | undefined;
  /** Undefined: the configured default when creating; a standing workspace's own is not compared. */
  readonly template?: string | undefined;
  readonly create: "if_absent" | "must_exist" | "must_create";
  /** Only the Sandbox with this uid is adopted, and none is created. */
  readonly expectedSandboxUid?: SandboxUid | undefined;
  /** Kept for later resumes of the handle. Undefined: suspend_if_woken. */
  readonly onStartFailure?: OnStartFailure | undefined;
  /** Also write the template's current pod template, where this call wakes (L31). */
  readonly refreshPodTemplate?: boolean | undefined;
  /** Use the disk that stands, though it may be an empty one in the place of another (L16). */
  readonly acceptReplacedDisk?: boolean | undefined;
  readonly readyTimeoutMs: number;
}

export interface ResumeWish {
  /** Undefined: it carries no epoch. */
  readonly fencing?: StartFencing | undefined;
  /** Undefined: what the handle was opened with. */
  readonly onStartFailure?: OnStartFailure | undefined;
  /** As for OpenWish. */
  readonly refreshPodTemplate?: boolean | undefined;
  readonly acceptReplacedDisk?: boolean | undefined;
  readonly readyTimeoutMs: number;
}

export interface FlushWish {
  readonly enabled: boolean;
  readonly timeoutMs: number;
}

/** How programs are brought to an end before a pod is stopped (L27). */
export interface QuiesceWish {
  /** Between SIGTERM and SIGKILL. Undefined: the guest's default. */
  readonly graceMs: number | undefined;
}

export interface SuspendWish {
  /** Undefined: it carries no epoch. */
  readonly fencing?: StopFencing | undefined;
  /** Undefined: programs end with the pod. */
  readonly quiesce?: QuiesceWish | undefined;
  readonly flush: FlushWish;
  readonly stopTimeoutMs: number;
}

export interface DestroyWish extends SuspendWish {
  /** Delete the object and its disk. Without it a destroy *is* a suspend (L4). */
  readonly deleteDisk: boolean;
  /** With `deleteDisk`: only the Sandbox with this uid is deleted. */
  readonly expectedSandboxUid?: SandboxUid | undefined;
}

/** What became of the flush that belongs to a suspend (L26). */
export interface FlushReport {
  readonly outcome: "flushed" | "unsupported" | "unreachable" | "skipped";
  /** Why, and what is safe; empty for `flushed`. */
  readonly cause: string;
  /** Set when flushed. */
  readonly tookMs?: number;
}

/** What became of the quiesce that belongs to a suspend (L27). */
export interface QuiesceReport {
  readonly outcome: "quiesced" | "unsupported" | "skipped";
  /** Why; empty when the whole pod was reached. */
  readonly cause: string;
  /** Undefined: there was none. */
  readonly scope: QuiesceResult["scope"] | undefined;
  readonly rounds: number;
  readonly stopped: readonly StoppedProcess[];
  /** How many were stopped in all; `stopped` names the first of them. */
  readonly stoppedCount: number;
  /** Of another user. */
  readonly notReached: readonly StoppedProcess[];
}

/** A page of the inventory. */
export interface ListWorkspacesWish {
  /** How many objects are read; the page may be shorter. */
  readonly limit: number;
  readonly continueToken: string | undefined;
  readonly mode?: "Running" | "Suspended" | undefined;
  readonly template?: string | undefined;
  readonly idPrefix?: string | undefined;
  /** Milliseconds since the epoch; never matches one whose mode was never changed. */
  readonly modeChangedBefore?: number | undefined;
}
