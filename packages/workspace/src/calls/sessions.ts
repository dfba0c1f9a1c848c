import { Deadline } from "@holdfast/async";
import { type HolderEpoch, sessionCallTimeoutMs } from "@holdfast/contract";
import type { HoldfastError } from "@holdfast/errors";
import { LeaveRunning } from "../ports/executions.ts";
import type { Guest } from "../ports/guest.ts";
import type {
  AttachSessionWish,
  GuestSessions,
  OpenedSession,
  OpenSessionWish,
  SessionChunk,
  SessionEvent,
  SessionInfo,
  WriteSessionWish,
} from "../ports/sessions.ts";
import type { Handle } from "../state/handle.ts";
import type { BoundGuest } from "../state/workspace-state.ts";
import { type EpochClaim, readsOnly } from "./epoch-claim.ts";
import { askGuest, callGuest, type Lost } from "./guest-call.ts";
import { guestGone } from "./guest-gone.ts";
import { attachLost, killUnconfirmed, openUnknown, readLost, sendAgain } from "./session-refusals.ts";
import { type Terminal, type TerminalEvent, terminal } from "./terminal.ts";

/** What a client that goes away leaves behind: an attachment that is kept for 60 s, or the end of what is bound to it. */
export type AttachmentEnd = "kept" | "with_client";

type Wish<Verb extends "resize" | "signal" | "kill" | "read" | "detach"> = Parameters<GuestSessions[Verb]>[0];

/**
 * The terminals and detached programs of one workspace, as its guest has them (GuestSessions). Admission, the one rebind and the one
 * re-read are inside. Reads carry no epoch; whatever could change something does.
 */
export class WorkspaceSessions {
  readonly #ws: Handle;
  readonly #change: EpochClaim;
  readonly #named: (error: unknown) => unknown;

  /** `named` adds to an error what it is about. */
  constructor(ws: Handle, epoch: HolderEpoch | undefined, named: (error: unknown) => unknown) {
    this.#ws = ws;
    this.#change = { changes: true, epoch };
    this.#named = named;
  }

  /** SESSION_OUTCOME_UNKNOWN: it was sent and not answered. `onSend`: the guest is asked from here on. */
  async open(wish: OpenSessionWish, signal: AbortSignal, onSend?: () => void): Promise<OpenedSession> {
    const lost = (cause: Error): HoldfastError => openUnknown(this.#ws, wish.sessionId, cause);
    return await this.#ask(this.#change, lost, signal, async (guest, within, bound) => {
      onSend?.();
      const opened = await guest.sessions.open(wish, within);
      if (opened.bootId !== undefined) this.#ws.noteBootId(bound, opened.bootId);
      return opened;
    });
  }

  /**
   * Follows a session. Aborting the signal, or returning the iterator early, is the client's end, and `atEnd` says what it means. Ends
   * with `exited`, or throws SESSION_DETACHED (id and offset), GUEST_GONE (its pod was seen gone), ATTACHMENT_DISPLACED, or why the
   * workspace let it go.
   */
  async *attach(
    wish: AttachSessionWish,
    atEnd: AttachmentEnd,
    signal: AbortSignal,
  ): AsyncGenerator<SessionEvent, void> {
    let offset = wish.fromOffset;
    let attachmentId = wish.attachmentId;
    const ws = this.#ws;
    const open = async function* (guest: Guest, bound: BoundGuest): AsyncGenerator<SessionEvent> {
      for await (const event of followed(guest.sessions, wish, atEnd, signal)) {
        if (event.t === "attached") {
          ws.noteBootId(bound, event.bootId);
          attachmentId = event.attachmentId;
        } else if (event.t === "output") offset = event.offset + event.data.length;
        else if (event.t === "gap") offset = event.to;
        yield event;
      }
    };
    const { sessionId } = wish;
    const lost: Lost = (cause, gone) =>
      gone
        ? guestGone(ws, gone, `session ${sessionId}`, { session_id: sessionId, offset: String(offset) }, cause)
        : attachLost(ws, { sessionId, attachmentId, offset }, cause);
    const claim = wish.mode === "observe" ? readsOnly : this.#change;
    try {
      yield* callGuest(ws, { feature: "sessions", claim, holds: "sessions", open, lost }, signal);
    } catch (error) {
      throw this.#named(error);
    }
  }

  /** Input, resizes, signals and output together. */
  async *terminal(call: Terminal, signal: AbortSignal): AsyncGenerator<TerminalEvent, void> {
    try {
      yield* terminal(this, call, this.#ws.deps.clock, signal);
    } catch (error) {
      throw this.#named(error);
    }
  }

  /** SESSION_DETACHED: send the same sequence again. */
  async write(wish: WriteSessionWish, signal: AbortSignal): Promise<{ readonly nextSequence: number }> {
    const lost = (cause: Error): HoldfastError =>
      sendAgain(this.#ws, wish.sessionId, `Input ${wish.sequence} was not confirmed as written`, cause);
    return await this.#ask(this.#change, lost, signal, (guest, within) => guest.sessions.write(wish, within));
  }

  async resize(wish: Wish<"resize">, signal: AbortSignal): Promise<void> {
    const lost = (cause: Error): HoldfastError =>
      sendAgain(this.#ws, wish.sessionId, "The new size was not confirmed", cause);
    await this.#ask(this.#change, lost, signal, (guest, within) => guest.sessions.resize(wish, within));
  }

  /** To the foreground process group. SESSION_DETACHED: whether it was sent is not known. */
  async signal(wish: Wish<"signal">, signal: AbortSignal): Promise<void> {
    const lost = (cause: Error): HoldfastError =>
      sendAgain(this.#ws, wish.sessionId, `Whether ${wish.signal} was sent is not known`, cause);
    await this.#ask(this.#change, lost, signal, (guest, within) => guest.sessions.signal(wish, within));
  }

  async kill(wish: Wish<"kill">, signal: AbortSignal): Promise<SessionInfo> {
    const lost = (cause: Error): HoldfastError => killUnconfirmed(this.#ws, wish.sessionId, cause);
    return await this.#ask(this.#change, lost, signal, (guest, within) => guest.sessions.kill(wish, within));
  }

  async read(wish: Wish<"read">, signal: AbortSignal): Promise<SessionChunk> {
    const lost = (cause: Error): HoldfastError => readLost(this.#ws, cause);
    const ask = (guest: Guest, within: Deadline): Promise<SessionChunk> => guest.sessions.read(wish, within);
    return await this.#ask(readsOnly, lost, signal, ask, wish.waitMs);
  }

  async list(signal: AbortSignal): ReturnType<GuestSessions["list"]> {
    const lost = (cause: Error): HoldfastError => readLost(this.#ws, cause);
    return await this.#ask(readsOnly, lost, signal, async (guest, within, bound) => {
      const listed = await guest.sessions.list(within);
      this.#ws.noteBootId(bound, listed.bootId);
      return listed;
    });
  }

  async detach(wish: Wish<"detach">, signal: AbortSignal): Promise<void> {
    const lost = (cause: Error): HoldfastError =>
      sendAgain(this.#ws, wish.sessionId, "Whether the attachment was let go is not known", cause);
    await this.#ask(this.#change, lost, signal, (guest, within) => guest.sessions.detach(wish, within));
  }

  /** A call with one answer, which takes no longer than such calls do, and `waitMs` that it may wait inside the guest. */
  async #ask<Answer>(
    claim: EpochClaim,
    lost: (cause: Error) => HoldfastError,
    signal: AbortSignal,
    ask: (guest: Guest, within: Deadline, bound: BoundGuest) => Promise<Answer>,
    waitMs = 0,
  ): Promise<Answer> {
    const inTime = async (guest: Guest, bound: BoundGuest): Promise<Answer> => {
      using within = new Deadline(this.#ws.deps.clock, sessionCallTimeoutMs + waitMs, signal);
      return await ask(guest, within, bound);
    };
    try {
      return await askGuest(this.#ws, { feature: "sessions", claim, ask: inTime, lost }, signal);
    } catch (error) {
      throw this.#named(error);
    }
  }
}

/** An attachment whose reader may go at any moment. What that means is said to the guest's client by the reason of its signal. */
async function* followed(
  sessions: GuestSessions,
  wish: AttachSessionWish,
  atEnd: AttachmentEnd,
  signal: AbortSignal,
): AsyncGenerator<SessionEvent, void> {
  const end = new AbortController();
  const leave = (): void => end.abort(atEnd === "kept" ? new LeaveRunning() : signal.reason);
  if (signal.aborted) leave();
  signal.addEventListener("abort", leave, { once: true });
  const events = sessions.attach(wish, end.signal)[Symbol.asyncIterator]();
  try {
    for (let next = await events.next(); !next.done; next = await events.next()) yield next.value;
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  } finally {
    signal.removeEventListener("abort", leave);
    leave(); // Before the iterator is returned: by itself that is a client's end.
    await events.return?.();
  }
}
