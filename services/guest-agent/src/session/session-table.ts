import { randomBytes } from "node:crypto";
import { type Clock, orAborted } from "@holdfast/async";
import {
  type SessionId,
  sessionEnvironmentsMaxBytes,
  sessionKeptMs,
  sessionRingMaxBytes,
  sessionsMax,
} from "@holdfast/contract";
import { AnsweredError } from "@holdfast/guest-link";
import type { Quiet } from "../disk/quiet.ts";
import { environmentBytesOf } from "../execution/environment-bytes.ts";
import { LogBudget } from "../execution/log-budget.ts";
import { directoryOf, type StartRoot } from "../execution/start-directory.ts";
import { loadKoffi } from "../libc/koffi.ts";
import { terminalCallsOf } from "../libc/terminal-calls.ts";
import type { Reservation } from "./attachments.ts";
import { noRoom, type SessionCalls } from "./launch-session.ts";
import { Session } from "./session.ts";
import { SessionIds } from "./session-ids.ts";
import type { SessionWish } from "./session-wish.ts";

export interface SessionTableOptions {
  readonly root: StartRoot;
  readonly environment: Readonly<Record<string, string>>;
  readonly clock: Clock;
  readonly quiet: Quiet;
  readonly ids: SessionIds;
  readonly calls: SessionCalls;
}

/**
 * The table of this agent process. Undefined where terminals cannot be made, which takes the addon; `spawner` starts programs on them.
 * Throws when it cannot be known which sessions former processes had.
 */
export function openSessions(
  needs: Omit<SessionTableOptions, "ids" | "calls"> & Omit<SessionCalls, "terminals">,
  stateDirectory: string,
  bootId: string,
): SessionTable | undefined {
  const koffi = loadKoffi();
  if (koffi === undefined) return undefined;
  const { spawner, pipes, looks, ...options } = needs;
  const calls = { spawner, pipes, looks, terminals: terminalCallsOf(koffi) };
  return new SessionTable({ ...options, calls, ids: new SessionIds(stateDirectory, bootId) });
}

/** Who opens a session. */
export interface Opener {
  /** Throws when it may not any more; asked again in the step in which the program is begun. */
  readonly admit: () => void;
  /** Undefined: none is reserved. */
  readonly reservation: Reservation | undefined;
}

/** One who may, and has reserved nothing. */
export const anybody: Opener = { admit: () => undefined, reservation: undefined };

/** Names the environment entry by which a session's processes are known, wherever they went. */
const markerName = "HOLDFAST_SESSION";

/** The sessions that this agent knows (G16). A running one is never let go. */
export class SessionTable {
  readonly #options: SessionTableOptions;
  /** In the order in which they were opened. */
  readonly #sessions = new Map<SessionId, Session>();
  /** Of those that have ended: how to leave them their place for good. */
  readonly #cancelExpiry = new Map<Session, () => void>();
  /** Of which the program is being started: it may run already, so they are told as running. */
  readonly #opening = new Map<SessionId, { readonly session: Session; readonly settled: Promise<void> }>();
  /** Of the environments of those that are being opened. */
  #environmentBytes = 0;
  /** Each ring is bounded by itself; together they cannot exceed this. */
  readonly #budget = new LogBudget(sessionsMax * sessionRingMaxBytes);

  constructor(options: SessionTableOptions) {
    this.#options = options;
  }

  /** With those that are being opened, in place of the former ones of their ids. */
  get all(): readonly Session[] {
    const opening = [...this.#opening.values()].map(({ session }) => session);
    return [...[...this.#sessions.values()].filter(({ wish }) => !this.#opening.has(wish.id)), ...opening];
  }

  get running(): readonly Session[] {
    return this.all.filter(({ exit }) => exit === undefined);
  }

  /**
   * Starts a program under an id. Looking and taking the id is one step. Rejects with AnsweredError, or as its opener may not any more;
   * nothing runs then.
   */
  open(wish: SessionWish, opener: Opener = anybody): Promise<Session> {
    return this.#options.quiet.start(() => this.#open(wish, opener));
  }

  /** The session of this id whose program is being started. */
  opening(id: SessionId): Session | undefined {
    return this.#opening.get(id)?.session;
  }

  /** Resolves once no program is being started under this id: what is asked of the session before is not told that there is none. */
  async settled(id: SessionId, signal: AbortSignal): Promise<void> {
    const opening = this.#opening.get(id);
    if (opening !== undefined) await orAborted(opening.settled, signal);
  }

  /** What a session wrote can be read, also while another is being opened under its id. */
  has(id: SessionId): boolean {
    return this.#sessions.has(id);
  }

  /**
   * Throws SESSION_LOST when a former agent process of this pod had it, else what `isExpected` throws of a caller that has it from another
   * guest, else SESSION_NOT_FOUND.
   */
  require(id: SessionId, isExpected: () => void = () => undefined): Session {
    const session = this.#sessions.get(id);
    if (session !== undefined) return session;
    const bootId = this.#options.ids.lostWith(id);
    if (bootId !== undefined) {
      throw new AnsweredError(
        "SESSION_LOST",
        `Session ${id} was a former agent process's: its program ended with that, or was never started. Nothing was started in its place; open a new one.`,
        { session_id: id, boot_id: bootId },
      );
    }
    isExpected();
    const message = `Nothing was done: this guest knows no session ${id}. ListSessions tells which it knows.`;
    throw new AnsweredError("SESSION_NOT_FOUND", message, { session_id: id });
  }

  async #open(wish: SessionWish, { admit, reservation }: Opener): Promise<Session> {
    const { environment, root, ids, clock, calls } = this.#options;
    const former = this.#sessions.get(wish.id);
    if ((former !== undefined && former.exit === undefined) || this.#opening.has(wish.id)) {
      throw new AnsweredError("SESSION_EXISTS", `Nothing was started: session ${wish.id} runs.`, {
        session_id: wish.id,
      });
    }
    const environmentBytes = environmentBytesOf(wish.env);
    this.#assertRoom(environmentBytes);
    const marker = `${wish.id}/${randomBytes(8).toString("hex")}`;
    const session = new Session(wish, `${markerName}=${marker}`, { clock, calls, budget: this.#budget });
    if (reservation !== undefined) session.attachments.reserve(reservation);
    // The former one keeps its place until the new one runs: what it wrote can be read as long as nothing took its place.
    const settled = Promise.withResolvers<void>();
    this.#opening.set(wish.id, { session, settled: settled.promise });
    this.#environmentBytes += environmentBytes;
    // Its file is the former one's, whose time may be over before this one's is written.
    let takeBack = (): void => (former === undefined ? undefined : ids.forget(wish.id));
    try {
      const cwd = await directoryOf(wish.cwd, root, calls.looks, (cause, why) => noRoom(wish, cause, why));
      admit(); // Another holder may have come during that look.
      takeBack = ids.remember(wish.id); // Before the start: a program of which nobody knows must not be possible.
      await session.start(cwd, { ...environment, ...wish.env, [markerName]: marker }, admit);
    } catch (error) {
      session.attachments.close();
      session.dispose();
      if (!this.#sessions.has(wish.id)) takeBack(); // There was no former one, or its time is over.
      throw error;
    } finally {
      this.#environmentBytes -= environmentBytes;
      this.#opening.delete(wish.id);
      settled.resolve(); // Whoever waits goes on after the steps that follow this one.
    }
    if (this.#sessions.get(wish.id) === former && former !== undefined) this.#remove(former);
    else this.#makeRoom();
    this.#sessions.set(wish.id, session);
    void session.ended.then(() => this.#hasEnded(session));
    return session;
  }

  #hasEnded(session: Session): void {
    if (this.#sessions.get(session.wish.id) !== session) return; // Another has its id by now.
    this.#cancelExpiry.set(
      session,
      this.#options.clock.schedule(sessionKeptMs, () => this.#forget(session)),
    );
  }

  #assertRoom(environmentBytes: number): void {
    if (this.running.length >= sessionsMax) throw tooMany();
    if (this.#environmentBytes + environmentBytes > sessionEnvironmentsMaxBytes) throw tooLong(environmentBytes);
  }

  /** Of those that have ended, the one that did first goes. */
  #makeRoom(): void {
    if (this.#sessions.size < sessionsMax) return;
    const ended = this.all.filter(({ exit }) => exit !== undefined);
    const [first] = ended.sort((one, other) => (one.exit?.atMs ?? 0) - (other.exit?.atMs ?? 0));
    if (first) this.#forget(first);
  }

  #forget(session: Session): void {
    const { id } = session.wish;
    this.#remove(session);
    if (!this.#opening.has(id)) this.#options.ids.forget(id); // Else it is kept for the one that is being opened under it.
  }

  #remove(session: Session): void {
    this.#sessions.delete(session.wish.id);
    this.#cancelExpiry.get(session)?.();
    this.#cancelExpiry.delete(session);
    session.dispose();
  }
}

function tooMany(): AnsweredError {
  return new AnsweredError(
    "SESSION_CAPACITY",
    `Nothing was started: the guest already runs ${sessionsMax} sessions (sessionsMax). End one.`,
    { limit: String(sessionsMax), setting: "sessionsMax" },
  );
}

function tooLong(bytes: number): AnsweredError {
  return new AnsweredError(
    "SESSION_CAPACITY",
    `Nothing was started: its environment of ${bytes} bytes does not fit beside those of sessions that wait to be opened, of the ` +
      `${sessionEnvironmentsMaxBytes} bytes that there are for them (sessionEnvironmentsMaxBytes). Try again when those are open, or pass a file.`,
    { limit: String(sessionEnvironmentsMaxBytes), setting: "sessionEnvironmentsMaxBytes" },
  );
}
