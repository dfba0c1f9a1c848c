import type { Deadline } from "@holdfast/async";
import type { BootId, ExecutionId } from "@holdfast/contract";
import type { ExecutionEvent, ExecutionExit } from "./guest.ts";

/**
 * The commands that a guest knows, by their ids. EXECUTION_NOT_FOUND: none of that id, or its record has expired; EXECUTION_LOST: a
 * former agent process of the pod had it, and what became of it is not known. Otherwise it fails as `Guest` does. All but `attach` need
 * the feature `execution-control`.
 */
export interface GuestExecutions {
  /**
   * Follows a command as an observer: signals nothing, holds nothing back, and ends nothing. Yields `started` first (`attached`: true),
   * then output from the offset on, and `exited` last. A lost link to the same guest is retried as by `Guest.execute`. Aborting the
   * signal, or returning the iterator early, detaches. OFFSET_OUT_OF_RANGE, GUEST_RESTARTED.
   */
  attach(wish: AttachWish, signal: AbortSignal): AsyncIterable<ExecutionEvent>;
  get(id: ExecutionId, within: Deadline): Promise<{ readonly execution: GuestExecution; readonly bootId: BootId }>;
  /** All that the guest knows, ended ones that are still kept included. Of one agent process. */
  list(within: Deadline): Promise<{ readonly executions: readonly GuestExecution[]; readonly bootId: BootId }>;
  /** Sends a signal to the command's process group. One that the guest does not take is INVALID_REQUEST. */
  signal(order: SignalOrder, within: Deadline): Promise<{ readonly alreadyEnded: boolean }>;
  /**
   * Feeds a command that was started with `streamedStdin`; resolves once all of it is in the program's pipe. Repeating one whose answer
   * was lost is safe: bytes before the guest's position are skipped. OFFSET_OUT_OF_RANGE (metadata `expected`): it leaves a hole.
   */
  writeStdin(input: StdinInput, within: Deadline): Promise<StdinTaken>;
  /** Ends a command, and resolves once nothing of it is left. CANCELLATION_UNCONFIRMED names what survived. */
  cancel(order: CancelOrder, within: Deadline): Promise<{ readonly alreadyEnded: boolean }>;
}

export interface AttachWish {
  readonly executionId: ExecutionId;
  readonly fromOffset: number;
  /** Undefined: no bound on what is delivered. */
  readonly maxOutputBytes: number | undefined;
  /** Undefined: whichever agent process there is. */
  readonly expectedBootId: BootId | undefined;
}

export interface SignalOrder {
  readonly executionId: ExecutionId;
  /** HUP INT QUIT TERM KILL USR1 USR2 WINCH CONT STOP, with or without "SIG". */
  readonly signal: string;
  readonly expectedBootId: BootId | undefined;
}

export interface CancelOrder {
  readonly executionId: ExecutionId;
  /** Between SIGTERM and SIGKILL. Absent: the guest's default. */
  readonly graceMs?: number | undefined;
  readonly expectedBootId?: BootId | undefined;
}

export interface StdinInput {
  readonly executionId: ExecutionId;
  /** Position of `data` in the whole input. */
  readonly offset: number;
  /** At most 64 KiB. */
  readonly data: Uint8Array;
  /** Nothing follows `data`. */
  readonly end: boolean;
}

export interface StdinTaken {
  /** Where the next input belongs. */
  readonly nextOffset: number;
  /** The program takes no more: it has ended, or closed its input. */
  readonly closed: boolean;
}

/** A command as the guest knows it. Never its environment or input. */
export interface GuestExecution {
  readonly executionId: ExecutionId;
  readonly command: string;
  readonly args: readonly string[];
  /** Milliseconds since 1970, by the guest's clock. */
  readonly startedAtMs: number;
  /** Of its leader; 0 when the program could not be started. */
  readonly pid: number;
  readonly retainOutput: boolean;
  /** Written so far. */
  readonly outputBytes: number;
  /** Position of the first byte that is still kept. */
  readonly keptFrom: number;
  /** Undefined: it has not ended. */
  readonly exit: ExecutionExit | undefined;
  /** Something of it survived SIGKILL for the confirmation time. */
  readonly unconfirmed: boolean;
  /** A client reads it now. */
  readonly hasClient: boolean;
}

/** Aborting a `Guest.execute` with this reason lets the command run on, whatever its `onDisconnect` says. */
export class LeaveRunning extends Error {
  constructor() {
    super("the command is left running");
    this.name = "LeaveRunning";
  }
}
