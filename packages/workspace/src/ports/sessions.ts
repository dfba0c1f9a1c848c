import type { Deadline } from "@holdfast/async";
import type { AttachmentId, BootId, SessionId } from "@holdfast/contract";

/** `terminal`: a PTY of its own. `detached`: no terminal, no input, its outputs kept as one. */
export type SessionKind = "terminal" | "detached";

/** Of a terminal; each 1 to 65535. */
export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

export interface OpenSessionWish {
  readonly sessionId: SessionId;
  readonly kind: SessionKind;
  /** "": the guest's shell. A detached session needs one. */
  readonly command: string;
  readonly args: readonly string[];
  /** Undefined: the workspace's root. */
  readonly cwd: string | undefined;
  readonly env: Readonly<Record<string, string>>;
  /** Undefined: 80 x 24. Terminals only. */
  readonly size: TerminalSize | undefined;
  /** The shell as a login shell. */
  readonly login: boolean;
  /** The program ends with the client that is attached, or 60 s after nobody is. */
  readonly clientBound: boolean;
  /** Another agent process is refused with GUEST_RESTARTED. */
  readonly expectedBootId: BootId | undefined;
  /**
   * Reserves the exclusive attachment of this id, a UUID that the caller made: it can be let go while the program is being started. Absent: none is.
   */
  readonly attachmentId?: AttachmentId | undefined;
}

export type SessionExit = {
  readonly status: { readonly t: "code"; readonly code: number } | { readonly t: "signal"; readonly signal: string };
  /** Set when the program could not be started. */
  readonly message: string | undefined;
  readonly atMs: number;
};

/** A session as the guest has it. Never its environment. */
export interface SessionInfo {
  readonly sessionId: SessionId;
  readonly kind: SessionKind;
  readonly command: string;
  readonly args: readonly string[];
  readonly startedAtMs: number;
  readonly lastInputAtMs: number | undefined;
  readonly lastOutputAtMs: number | undefined;
  /** One past the last byte of output. */
  readonly nextOffset: number;
  /** Output that is no longer kept. */
  readonly droppedBytes: number;
  /** Undefined: it runs. */
  readonly exit: SessionExit | undefined;
  /** An exclusive attachment has a stream. */
  readonly attached: boolean;
  readonly pid: number;
  readonly size: TerminalSize | undefined;
  readonly clientBound: boolean;
}

/** A session that was just opened. */
export interface OpenedSession extends SessionInfo {
  /** Of the agent process that owns it; undefined where an older agent does not say. */
  readonly bootId: BootId | undefined;
  /** What was reserved; absent: nothing, as by an older agent. */
  readonly attachmentId?: AttachmentId | undefined;
}

export interface AttachSessionWish {
  readonly sessionId: SessionId;
  /** Position of the first byte wanted. */
  readonly fromOffset: number;
  /** `exclusive` may write, and displaces the former one; `observe` reads only. */
  readonly mode: "exclusive" | "observe";
  /** The terminal is resized before output comes. Exclusive only. */
  readonly size: TerminalSize | undefined;
  /** Takes up an attachment again. Undefined: a new one. */
  readonly attachmentId: AttachmentId | undefined;
  readonly expectedBootId: BootId | undefined;
}

/** `delivered + gaps = produced` from the offset on. */
export type SessionEvent =
  | {
      readonly t: "attached";
      readonly attachmentId: AttachmentId;
      /** What the next write of this attachment must carry; 0 for an observer. */
      readonly nextInputSequence: number;
      readonly bootId: BootId;
      readonly offset: number;
      readonly session: SessionInfo;
    }
  | { readonly t: "output"; readonly offset: number; readonly data: Uint8Array }
  | { readonly t: "gap"; readonly from: number; readonly to: number }
  | { readonly t: "exited"; readonly exit: SessionExit; readonly nextOffset: number };

export interface WriteSessionWish {
  readonly sessionId: SessionId;
  readonly attachmentId: AttachmentId;
  /** From 1, one more with each. */
  readonly sequence: number;
  readonly data: Uint8Array;
}

export interface SessionChunk {
  readonly data: Uint8Array;
  /** Where `data` begins; later than asked for when older output is gone. */
  readonly offset: number;
  readonly nextOffset: number;
  readonly session: SessionInfo;
}

/**
 * The programs of one guest that outlive their connections. Failures as those of `Guest`. Needs the feature `sessions`.
 */
export interface GuestSessions {
  open(wish: OpenSessionWish, within: Deadline): Promise<OpenedSession>;
  /**
   * One `attached`, then output and gaps in order, then `exited` for a real end of the program. A lost link to the same guest is
   * retried with the same attachment from the last delivered offset for `reattachWindowMs`, unseen by the reader; then
   * SESSION_DETACHED (metadata `session_id`, `offset`). Aborting the signal, or returning the iterator early, is the client's own end: a
   * program that is bound to it ends too. With the reason LeaveRunning the attachment is merely given up, and kept for 60 s. Ends with ATTACHMENT_DISPLACED, or the reason given to `releaseSessions`, when
   * the attachment does while the program lives.
   */
  attach(wish: AttachSessionWish, signal: AbortSignal): AsyncIterable<SessionEvent>;
  /** Resolves once all of it is in the terminal. The same sequence may be sent again, by any client of the guest. */
  write(wish: WriteSessionWish, within: Deadline): Promise<{ readonly nextSequence: number }>;
  resize(
    wish: {
      readonly sessionId: SessionId;
      readonly size: TerminalSize;
      readonly attachmentId: AttachmentId | undefined;
    },
    within: Deadline,
  ): Promise<void>;
  /** To the foreground process group; by name, with or without "SIG". */
  signal(
    wish: { readonly sessionId: SessionId; readonly signal: string; readonly attachmentId: AttachmentId | undefined },
    within: Deadline,
  ): Promise<void>;
  /** Ends all that belongs to it, and answers its true state after 5 s at most. "": KILL. */
  kill(wish: { readonly sessionId: SessionId; readonly signal: string }, within: Deadline): Promise<SessionInfo>;
  read(
    wish: {
      readonly sessionId: SessionId;
      readonly fromOffset: number;
      /** Undefined: the guest's default. */
      readonly maxBytes: number | undefined;
      readonly waitMs: number;
    },
    within: Deadline,
  ): Promise<SessionChunk>;
  list(within: Deadline): Promise<{ readonly sessions: readonly SessionInfo[]; readonly bootId: BootId }>;
  /** Also of what was reserved, while its program is being started: it ends once it runs then, if it is bound to its client. */
  detach(
    wish: { readonly sessionId: SessionId; readonly attachmentId: AttachmentId; readonly clientClosed: boolean },
    within: Deadline,
  ): Promise<void>;
}
