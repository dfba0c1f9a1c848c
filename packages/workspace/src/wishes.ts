import type { SandboxUid } from "@holdfast/contract";
import type { StartFencing, StopFencing } from "./fence/fencing.ts";

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
  readonly readyTimeoutMs: number;
}

export interface ResumeWish {
  /** Undefined: it carries no epoch. */
  readonly fencing?: StartFencing | undefined;
  /** Undefined: what the handle was opened with. */
  readonly onStartFailure?: OnStartFailure | undefined;
  readonly readyTimeoutMs: number;
}

export interface FlushWish {
  readonly enabled: boolean;
  readonly timeoutMs: number;
}

export interface SuspendWish {
  /** Undefined: it carries no epoch. */
  readonly fencing?: StopFencing | undefined;
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
