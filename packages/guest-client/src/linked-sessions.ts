import { SessionKind, SessionService } from "@holdfast/api/holdfast/guest/v1/session_pb";
import { type Clock, type Deadline, pause } from "@holdfast/async";
import { attachmentIdOf, bootIdOf } from "@holdfast/contract";
import type { HoldfastError } from "@holdfast/errors";
import { type GuestLink, LinkLost, LinkProtocolError, NothingSent } from "@holdfast/guest-link";
import type {
  AttachSessionWish,
  GuestSessions,
  OpenedSession,
  OpenSessionWish,
  SessionChunk,
  SessionEvent,
  SessionInfo,
  WriteSessionWish,
} from "@holdfast/workspace";
import { FollowedSession } from "./follow-session.ts";
import { guestErrorOf } from "./guest-errors.ts";
import { sessionInfoOf } from "./session-info.ts";

const {
  openSession,
  writeSession,
  resizeSession,
  signalSession,
  killSession,
  readSession,
  listSessions,
  detachSession,
} = SessionService.method;

const writeAgainMs = 100;

/** The sessions of one guest, over the framed link. */
export class LinkedSessions implements GuestSessions {
  readonly #link: GuestLink;
  readonly #clock: Clock;
  /** What is attached through any view of this guest. */
  readonly #followed: Set<FollowedSession>;
  /** Of all guests of one dialler. */
  readonly #counts: { attachments: number };
  readonly #unreached: () => void;

  constructor(
    link: GuestLink,
    clock: Clock,
    of: {
      readonly attached: Set<FollowedSession>;
      readonly counts: { attachments: number };
      readonly unreached: () => void;
    },
  ) {
    this.#link = link;
    this.#clock = clock;
    this.#followed = of.attached;
    this.#counts = of.counts;
    this.#unreached = of.unreached;
  }

  /** Attachments that are followed through this client. */
  get liveAttachments(): number {
    return this.#followed.size;
  }

  async open(wish: OpenSessionWish, within: Deadline): Promise<OpenedSession> {
    const { sessionId, command, login, clientBound, size } = wish;
    const request = {
      sessionId,
      kind: wish.kind === "detached" ? SessionKind.DETACHED : SessionKind.TERMINAL,
      command,
      args: [...wish.args],
      cwd: wish.cwd ?? "",
      env: { ...wish.env },
      ...(size === undefined ? {} : { size: { columns: size.columns, rows: size.rows } }),
      login,
      clientBound,
      expectedBootId: wish.expectedBootId ?? "",
      attachmentId: wish.attachmentId ?? "",
    };
    const { session, bootId, attachmentId } = await answered(this.#link.call(openSession, request, { within }));
    return {
      ...sessionInfoOf(session),
      bootId: bootId === "" ? undefined : bootIdOf(bootId),
      attachmentId: attachmentId === "" ? undefined : attachmentIdOf(attachmentId),
    };
  }

  async *attach(wish: AttachSessionWish, signal: AbortSignal): AsyncGenerator<SessionEvent, void, undefined> {
    const forget = (): void => {
      if (this.#followed.delete(followed)) this.#counts.attachments -= 1;
    };
    const followed = new FollowedSession(this.#link, this.#clock, wish, signal, {
      over: forget,
      unreached: this.#unreached,
    });
    this.#followed.add(followed);
    this.#counts.attachments += 1;
    try {
      yield* followed.events();
    } finally {
      forget();
    }
  }

  /** A sequence is written once however often it is sent, so a lost answer is asked for again. */
  async write(wish: WriteSessionWish, within: Deadline): Promise<{ readonly nextSequence: number }> {
    const { sessionId, attachmentId, data } = wish;
    const request = { sessionId, attachmentId, sequence: BigInt(wish.sequence), data };
    for (let lost: unknown; ; ) {
      try {
        const { nextSequence } = await this.#link.call(writeSession, request, { within });
        return { nextSequence: Number(nextSequence) };
      } catch (error) {
        const mayBeAsked =
          (error instanceof LinkLost && !(error.cause instanceof LinkProtocolError)) ||
          (lost !== undefined && error instanceof NothingSent && error.why === "no-connection");
        // Once something was sent, nothing that follows proves that it was not.
        if (!mayBeAsked) throw guestErrorOf(error instanceof NothingSent && lost !== undefined ? lost : error);
        lost ??= error;
        await pause(this.#clock, writeAgainMs, within.signal).catch(() => {
          throw guestErrorOf(lost);
        });
      }
    }
  }

  async resize(wish: Parameters<GuestSessions["resize"]>[0], within: Deadline): Promise<void> {
    const { sessionId, attachmentId = "", size } = wish;
    const request = { sessionId, attachmentId, size: { columns: size.columns, rows: size.rows } };
    await answered(this.#link.call(resizeSession, request, { within }));
  }

  async signal(wish: Parameters<GuestSessions["signal"]>[0], within: Deadline): Promise<void> {
    const { sessionId, signal, attachmentId = "" } = wish;
    await answered(this.#link.call(signalSession, { sessionId, signal, attachmentId }, { within }));
  }

  async kill(wish: Parameters<GuestSessions["kill"]>[0], within: Deadline): Promise<SessionInfo> {
    return sessionInfoOf((await answered(this.#link.call(killSession, { ...wish }, { within }))).session);
  }

  async read(wish: Parameters<GuestSessions["read"]>[0], within: Deadline): Promise<SessionChunk> {
    const { sessionId, fromOffset, maxBytes = 0, waitMs } = wish;
    const request = { sessionId, fromOffset: BigInt(fromOffset), maxBytes, waitMs };
    const { data, offset, nextOffset, session } = await answered(this.#link.call(readSession, request, { within }));
    return { data, offset: Number(offset), nextOffset: Number(nextOffset), session: sessionInfoOf(session) };
  }

  async list(within: Deadline): Promise<Awaited<ReturnType<GuestSessions["list"]>>> {
    const { sessions, bootId } = await answered(this.#link.call(listSessions, {}, { within }));
    return { sessions: sessions.map(sessionInfoOf), bootId: bootIdOf(bootId) };
  }

  async detach(wish: Parameters<GuestSessions["detach"]>[0], within: Deadline): Promise<void> {
    await answered(this.#link.call(detachSession, { ...wish }, { within }));
  }

  /** See `Guest.releaseSessions`. Never rejects: what the guest did not confirm in time it knows by itself after 60 s. */
  async releaseAll(why: HoldfastError, within: Deadline): Promise<void> {
    await Promise.allSettled([...this.#followed].map((followed) => followed.release(why, this.#link, within)));
  }
}

function answered<T>(call: Promise<T>): Promise<T> {
  return call.catch((error) => {
    throw guestErrorOf(error);
  });
}
