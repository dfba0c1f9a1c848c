import { AttachMode, SessionService } from "@holdfast/api/holdfast/guest/v1/session_pb";
import { backoffMs, type Clock, Deadline, pause } from "@holdfast/async";
import { type AttachmentId, guestDialTimeoutMs } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import {
  AnsweredError,
  type CallerStream,
  type GuestLink,
  LinkLost,
  LinkProtocolError,
  NothingSent,
} from "@holdfast/guest-link";
import { type AttachSessionWish, GuestLost, LeaveRunning, type SessionEvent } from "@holdfast/workspace";
import { guestErrorOf } from "./guest-errors.ts";
import { Outage } from "./outage.ts";
import { SessionEvents } from "./session-events.ts";
import { StreamQueue } from "./stream-queue.ts";

const reattachBackoff = { firstMs: 50, maxMs: 2_000 };
/** A dial has its own deadline, and says more than this one, which only makes sure. */
const openTimeoutMs = 2 * guestDialTimeoutMs;
/** A link that lasted this long had recovered. */
const steadyMs = 1_000;

interface OpenStream {
  readonly stream: CallerStream;
  readonly queue: StreamQueue<SessionEvent>;
}

/** Who is told of an attachment beside its reader. */
export interface SessionFollower {
  /**
   * The guest has ended the attachment, or was asked to; perhaps more than once: also where its reader stands still, and has not had the
   * events before, nor the reason.
   */
  over(): void;
  /** The guest was not reached, while the attachment waits to be taken up again. */
  unreached(): void;
}

/** One attachment to a session, followed across lost connections to the same guest. */
export class FollowedSession {
  readonly #link: GuestLink;
  readonly #clock: Clock;
  readonly #wish: AttachSessionWish;
  readonly #signal: AbortSignal;
  readonly #follower: SessionFollower;
  #open: OpenStream | undefined;
  #attachmentId: AttachmentId | undefined;
  #bootId: string | undefined;
  /** The reader has had its `attached`. */
  #told = false;
  #left = false;
  #released: HoldfastError | undefined;
  #wakeReleased: (() => void) | undefined;
  #attachedAtMs = 0;
  /** Up to where events were handed on. */
  #offset: number;
  #outage: Outage | undefined;

  constructor(link: GuestLink, clock: Clock, wish: AttachSessionWish, signal: AbortSignal, follower: SessionFollower) {
    this.#follower = follower;
    this.#link = link;
    this.#clock = clock;
    this.#wish = wish;
    this.#signal = signal;
    this.#offset = wish.fromOffset;
    this.#attachmentId = wish.attachmentId;
    this.#bootId = wish.expectedBootId;
  }

  /** See `GuestSessions.attach`. */
  async *events(): AsyncGenerator<SessionEvent, void, undefined> {
    const signal = this.#signal;
    signal.throwIfAborted();
    // At once: the reader may be busy with an event, or never come back.
    const onAbort = (): void => {
      this.#open?.queue.end(asError(signal.reason));
      this.#leave();
    };
    signal.addEventListener("abort", onAbort, { once: true });
    let exited = false;
    try {
      while (!exited) {
        const event = await this.#next();
        exited = event.t === "exited";
        yield event;
      }
    } catch (error) {
      throw this.#released ?? (signal.aborted ? signal.reason : guestErrorOf(error));
    } finally {
      signal.removeEventListener("abort", onAbort);
      if (!exited) this.#leave();
      // A guest that says the end but does not end its stream would keep the connection for ever.
      else this.#open?.stream.end({ clientClosed: false });
    }
  }

  /**
   * Lets the attachment go for good: its reader gets `why` after what it was sent. A program that is bound to its client ends. Resolves
   * when the guest has said so. `link`: under whose epoch.
   */
  async release(why: HoldfastError, link: GuestLink, within: Deadline): Promise<void> {
    this.#released ??= why;
    this.#left = true;
    this.#open?.queue.end(why);
    this.#wakeReleased?.();
    const attachmentId = this.#attachmentId;
    if (attachmentId === undefined) {
      this.#open?.stream.end({ clientClosed: true });
      this.#follower.over();
      return;
    }
    const request = { sessionId: this.#wish.sessionId, attachmentId, clientClosed: true };
    try {
      await link.call(SessionService.method.detachSession, request, { within });
    } finally {
      this.#open?.stream.end({ clientClosed: true });
      this.#follower.over();
    }
  }

  async #next(): Promise<SessionEvent> {
    for (;;) {
      try {
        const { queue } = this.#open ?? (await this.#attach());
        const event = await queue.next();
        if (event === undefined) throw new LinkLost("the stream ended early");
        if (this.#isRepeated(event)) continue;
        this.#outage = undefined;
        return event;
      } catch (error) {
        if (this.#released) throw this.#released;
        this.#signal.throwIfAborted();
        await this.#endure(error);
      }
    }
  }

  /** True for an `attached` that the reader has had already. Takes note of where the event leads. */
  #isRepeated(event: SessionEvent): boolean {
    if (event.t === "attached") {
      const repeated = this.#told;
      this.#told = true;
      this.#bootId = event.bootId;
      this.#attachmentId = event.attachmentId;
      return repeated;
    }
    if (event.t === "output") this.#offset = event.offset + event.data.length;
    else if (event.t === "gap") this.#offset = event.to;
    return false;
  }

  async #attach(): Promise<OpenStream> {
    const { sessionId, mode, size } = this.#wish;
    const queue = new StreamQueue<SessionEvent>();
    const request = {
      sessionId,
      fromOffset: BigInt(this.#offset),
      mode: mode === "observe" ? AttachMode.OBSERVE : AttachMode.EXCLUSIVE,
      attachmentId: this.#attachmentId ?? "",
      expectedBootId: this.#bootId ?? "",
      // Once: the terminal may have been resized since.
      ...(size === undefined || this.#told ? {} : { size: { columns: size.columns, rows: size.rows } }),
    };
    using within = new Deadline(this.#clock, openTimeoutMs, this.#signal);
    const events = new SessionEvents(this.#offset, queue, (error) => {
      if (error instanceof AnsweredError) this.#follower.over(); // The guest's last word; a lost link is taken up again.
    });
    const stream = await this.#link.open(SessionService.method.attachSession, request, events, { within });
    this.#bootId ??= stream.bootId;
    if (this.#signal.aborted || this.#released) {
      stream.end({ clientClosed: this.#isClientsEnd });
      throw this.#released ?? this.#signal.reason;
    }
    queue.feedFrom(stream);
    this.#open = { stream, queue };
    this.#attachedAtMs = this.#clock.monotonicMs();
    return this.#open;
  }

  /** Waits before the next try to get back to the same guest, or throws because there is none: it has answered, or time is over. */
  async #endure(error: unknown): Promise<void> {
    this.#open = undefined;
    if (error instanceof LinkLost && error.cause instanceof LinkProtocolError) throw error;
    if (error instanceof LinkLost) {
      const nowMs = this.#clock.monotonicMs();
      // A silent program gives no other sign that a link had recovered; one that breaks at once had not.
      if (nowMs - this.#attachedAtMs > steadyMs) this.#outage = undefined;
      this.#outage ??= new Outage(error, nowMs);
    }
    const outage = this.#outage;
    if (outage === undefined) throw error;
    const lost = lossOf(error);
    if (lost !== undefined) {
      // Never NothingSent: it was attached before the outage.
      throw new GuestLost(`${lost} What became of session ${this.#wish.sessionId} is not known.`, error);
    }
    if (!(error instanceof LinkLost || error instanceof NothingSent)) throw error;
    const leftMs = outage.leftMs(this.#clock.monotonicMs());
    if (leftMs === undefined) throw this.#detached(outage);
    if (error instanceof NothingSent) this.#follower.unreached();
    const waitMs = Math.min(leftMs, backoffMs(reattachBackoff, outage.tried(), Math.random()));
    const released = new Promise<void>((resolve) => {
      this.#wakeReleased = resolve;
    });
    await Promise.race([pause(this.#clock, waitMs, this.#signal), released]);
    if (this.#released) throw this.#released;
  }

  #detached(outage: Outage): HoldfastError {
    const { sessionId } = this.#wish;
    return new HoldfastError("SESSION_DETACHED", {
      message:
        `The guest could not be reached again for ${outage.seconds(this.#clock.monotonicMs())} s. Session ${sessionId} was not ended: ` +
        `its program goes on while its pod does. Attach to it from offset ${this.#offset}.`,
      metadata: {
        session_id: sessionId,
        offset: String(this.#offset),
        attachment_id: this.#attachmentId ?? "",
        boot_id: this.#bootId ?? "",
      },
      cause: outage.cause,
    });
  }

  get #isClientsEnd(): boolean {
    return !(this.#signal.reason instanceof LeaveRunning);
  }

  /** The reader goes before the program's end. */
  #leave(): void {
    if (this.#left) return;
    this.#left = true;
    if (this.#open !== undefined) this.#open.stream.end({ clientClosed: this.#isClientsEnd });
    // Without a stream the guest knows by itself: what is bound to the client ends 60 s after it was last seen.
  }
}

/** Why the guest that it was attached to will not be reached again; undefined while it may come back. */
function lossOf(error: unknown): string | undefined {
  if (!(error instanceof NothingSent)) return undefined;
  if (error.why === "token-refused") return "Another guest is at the address now.";
  return error.why === "closed" || error.why === "protocol-mismatch" ? error.message : undefined;
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}
