import type { Deadline } from "@holdfast/async";
import type { BootId, ExecutionId, GuestFeature, HolderEpoch, PodUid } from "@holdfast/contract";
import type { HoldfastError } from "@holdfast/errors";
import type { GuestExecutions } from "./executions.ts";
import type { GuestFiles } from "./files.ts";
import type { GuestSessions } from "./sessions.ts";
import type { GuestTunnel, PortWish } from "./tunnel.ts";

/** Where a guest is and how it is proved to be the one: both read from one pod object. */
export interface GuestAddress {
  readonly host: string;
  readonly port: number;
  /** The pod's uid is the bind token. */
  readonly podUid: PodUid;
}

/** Makes clients of guests. Dialling happens at the first call. */
export interface GuestDialler {
  /**
   * `unreached` is called while what is followed in the guest waits to be taken up again, each time that the guest was not reached. It
   * may then be retired or closed, which ends the waiting.
   */
  guest(address: GuestAddress, unreached?: () => void): Guest;
}

/**
 * One guest agent, reached over its pod's address. Failures:
 * `GuestNotReached` proves that nothing was sent (no connection, or refused before OPEN) and alone allows a rebind (L39);
 * a HoldfastError is an answer of the guest; `GuestLost` is anything else: what became of the call is not known.
 */
export interface Guest {
  readonly address: GuestAddress;
  /** Its files. */
  readonly files: GuestFiles;
  /** The commands that it knows. */
  readonly executions: GuestExecutions;
  /** Its terminals and detached programs. */
  readonly sessions: GuestSessions;
  /**
   * Connects to a server in the guest. PORT_REFUSED: nobody listens there. Aborting the signal ends the connection. Needs the feature
   * `ports`.
   */
  connectPort(wish: PortWish, signal: AbortSignal): Promise<GuestTunnel>;
  /** `use`: it also looks at what is used of disk and memory. */
  health(within: Deadline, what?: { readonly use: boolean }): Promise<GuestHealth>;
  /** The raw `/proc/self/status` of a process that the agent starts as it starts commands; judged by the domain (G32). */
  probe(within: Deadline): Promise<string>;
  /**
   * Starts a command, or joins the one that this id names, and yields its events. A lost link to the same guest is retried from the
   * last delivered offset for `reattachWindowMs`, then EXECUTION_DETACHED. Aborting the signal is the client's end: `onDisconnect`
   * says what becomes of the command, unless the reason is LeaveRunning. Returning the iterator early is the same as aborting.
   */
  execute(wish: ExecutionWish, signal: AbortSignal): AsyncIterable<ExecutionEvent>;
  /**
   * The same guest, whose calls carry the caller's epoch, or none (L22). Shares connections and counts with this one. The guest answers
   * HOLDER_EPOCH_SUPERSEDED, HOLDER_EPOCH_NOT_TAKEN or HOLDER_EPOCH_REQUIRED (metadata `stored`: the guest's own) with nothing done.
   */
  under(epoch: HolderEpoch | undefined): Guest;
  /**
   * Raises the guest's epoch, and resolves once nothing of a lower one can take effect any more (G5a). Equal: only waits. A guest that
   * stands higher answers HOLDER_EPOCH_SUPERSEDED. Needs the feature `holder-epoch`.
   */
  fence(epoch: HolderEpoch, within: Deadline): Promise<void>;
  /** Stops every program in the pod (G23). QUIESCE_UNCONFIRMED is an answer. Needs the feature `quiesce`. */
  quiesce(order: QuiesceOrder, within: Deadline): Promise<QuiesceResult>;
  /** Lets a hold go; one that is over is a success. */
  releaseQuiesce(holdId: string, within: Deadline): Promise<void>;
  /** Writes the workspace's file system out (G25). FLUSH_UNCONFIRMED and GUEST_FEATURE_MISSING are answers. Needs the feature `flush`. */
  flush(timeoutMs: number, within: Deadline): Promise<{ readonly tookMs: number }>;
  /**
   * Ends what the callers of this client have attached to in the guest: terminals that are bound to their client are killed,
   * attachments detached, and their streams end with `why`. Nothing else is touched. Resolves when the guest has confirmed it, and not
   * later than `within`, whatever it answers.
   */
  releaseSessions(why: HoldfastError, within: Deadline): Promise<void>;
  /**
   * Its pod was seen gone. Nothing that was lost is taken up again, and ends as GuestLost; streams that stand end by themselves, or soon
   * when nobody is at their other end.
   */
  retire(): void;
  /** Lets connections go. What runs in the guest goes on. */
  close(): void;
}

export interface GuestHealth {
  readonly serving: boolean;
  readonly protocolVersion: number;
  readonly features: readonly (GuestFeature | (string & {}))[];
  readonly bootId: BootId;
  /** Undefined: not asked for, or the agent is older. */
  readonly use?: ResourceUse | undefined;
}

/** What is used of disk and memory; undefined is not known. */
export interface ResourceUse {
  /** The file system that the workspace's root is on. */
  readonly disk: DiskUse | undefined;
  /** The control group of the agent's container. */
  readonly memory: MemoryUse | undefined;
}

export interface DiskUse {
  readonly totalBytes: bigint;
  readonly usedBytes: bigint;
  /** To a program without privileges. */
  readonly availableBytes: bigint;
  /** Undefined: it has no such bound, or does not say. */
  readonly inodes: { readonly total: bigint; readonly used: bigint } | undefined;
}

export interface MemoryUse {
  readonly usedBytes: bigint;
  /** Without file pages that were not used lately. */
  readonly workingSetBytes: bigint | undefined;
  /** Undefined: none is set, or it cannot be read. */
  readonly limitBytes: bigint | undefined;
}

/** How programs are brought to an end. */
export interface QuiesceOrder {
  /** Between SIGTERM and SIGKILL. Undefined: the guest's default, 1 s. */
  readonly graceMs: number | undefined;
  /** When set, nothing new starts until it is released or this lease ends. */
  readonly holdMs: number | undefined;
}

/** What a quiesce reached. */
export interface QuiesceResult {
  /** `owned_sessions`: only what the agent started; it cannot see the whole pod. */
  readonly scope: "pid_namespace" | "owned_sessions";
  readonly rounds: number;
  readonly stopped: readonly StoppedProcess[];
  /** How many were stopped in all; `stopped` names the first of them. */
  readonly stoppedCount: number;
  /** Of another user. */
  readonly notReached: readonly StoppedProcess[];
  /** Undefined: no hold was asked for. */
  readonly holdId: string | undefined;
}

export interface StoppedProcess {
  readonly pid: number;
  /** The kernel's short name, never a command line. */
  readonly name: string;
  /** "" when none could be sent. */
  readonly lastSignal: string;
}

export interface ExecutionWish {
  readonly executionId: ExecutionId;
  readonly command: string;
  readonly args: readonly string[];
  /** Undefined: the workspace's root. */
  readonly cwd: string | undefined;
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: Uint8Array | undefined;
  /** Input comes by `executions.writeStdin` instead, until its end. Needs the feature `execution-control`. */
  readonly streamedStdin?: boolean;
  /** Undefined: it runs while it runs. */
  readonly timeoutMs: number | undefined;
  /** Undefined: no bound on what is delivered. */
  readonly maxOutputBytes: number | undefined;
  readonly retainOutput: boolean;
  readonly onDisconnect: "cancel" | "detach";
  /** Undefined: the guest's default. */
  readonly drainMs: number | undefined;
  readonly leftovers: "keep" | "kill";
  /** Refused with GUEST_RESTARTED, and not started, by another agent process. Absent: whichever there is. */
  readonly expectedBootId?: BootId;
}

/** `delivered + gaps = produced`, always. Offsets count both streams together. */
export type ExecutionEvent =
  | { readonly t: "started"; readonly executionId: ExecutionId; readonly bootId: BootId; readonly attached: boolean }
  | { readonly t: "output"; readonly stream: "stdout" | "stderr"; readonly offset: number; readonly data: Uint8Array }
  | { readonly t: "gap"; readonly from: number; readonly to: number; readonly reason: "max_output" | "dropped" }
  | { readonly t: "exited"; readonly exit: ExecutionExit };

export interface ExecutionExit {
  readonly status: { readonly t: "code"; readonly code: number } | { readonly t: "signal"; readonly signal: string };
  readonly timedOut: boolean;
  readonly leftovers: readonly { readonly pid: number; readonly name: string }[];
  readonly outputBytes: number;
  readonly ranMs: number;
  /** Set when the program could not be started. */
  readonly message: string | undefined;
}

/** Nothing was sent: no connection, or refused before OPEN. */
export class GuestNotReached extends Error {
  readonly why: "no-connection" | "token-refused" | "protocol-mismatch" | "name-unresolvable" | "retiring";
  constructor(why: GuestNotReached["why"], message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "GuestNotReached";
    this.why = why;
  }
}

/** The link broke after something was sent. */
export class GuestLost extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "GuestLost";
  }
}
