import type { AttachTerminalResponse, TerminalResponse } from "@holdfast/api/holdfast/v1/session_pb";
import type { SessionId } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";

/** How far a terminal has been delivered on one call: what a caller needs to go on elsewhere. */
export class SessionProgress {
  readonly #sessionId: SessionId;
  readonly #opening: SessionOpening | undefined;
  #isAttached = false;
  #attachmentId: string;
  #bootId = "";
  #nextOffset: bigint;

  /** `opening`: of a call that may start the program. */
  constructor({ sessionId, fromOffset, attachmentId }: SessionStart, opening?: SessionOpening) {
    this.#sessionId = sessionId;
    this.#opening = opening;
    this.#nextOffset = BigInt(fromOffset);
    this.#attachmentId = attachmentId ?? "";
  }

  /** Takes note of a response that has been taken over by the listener, never of one that may still be let go. */
  delivered({ event }: AttachTerminalResponse | TerminalResponse): void {
    if (event.case === "attached") {
      this.#isAttached = true;
      this.#attachmentId = event.value.attachmentId;
      this.#bootId = event.value.bootId;
    } else if (event.case === "data") this.#nextOffset = event.value.offset + BigInt(event.value.data.byteLength);
    else if (event.case === "gap") this.#nextOffset = event.value.to;
  }

  /** What the call ends with when the service drains: neither program nor attachment is ended. */
  letGoByDrain(): HoldfastError {
    if (!this.#isAttached && this.#opening !== undefined) return startLetGo(this.#sessionId);
    return new HoldfastError("SERVICE_DRAINING", {
      message: `This process is stopping and let session ${this.#sessionId} go at offset ${this.#nextOffset}. ${this.#whatStands} Attach to it again; another process, or this one when it is back, will serve it.`,
      metadata: {
        session_id: this.#sessionId,
        offset: String(this.#nextOffset),
        attachment_id: this.#attachmentId,
        boot_id: this.#bootId,
      },
    });
  }

  get #whatStands(): string {
    if (!this.#isAttached) return "It is not known to have been attached to; no program was ended.";
    return this.#opening?.startedBound()
      ? "Its program is bound to its client: it ends unless somebody attaches within 60 s."
      : "Its program goes on, and its attachment is kept for 60 s.";
  }
}

export interface SessionOpening {
  /** By now the call has started a program that is bound to its client. */
  startedBound(): boolean;
}

export interface SessionStart {
  readonly sessionId: SessionId;
  readonly fromOffset: number;
  readonly attachmentId: string | undefined;
}

/** What the start of a program ends with when the service drains before it was answered. */
export function startLetGo(sessionId: SessionId): HoldfastError {
  return new HoldfastError("SESSION_OUTCOME_UNKNOWN", {
    message: `This process is stopping and let the call go before the start of session ${sessionId} was confirmed. It runs under this id, was never started, or ended with the guest's agent or pod: ListSessions tells whether it runs.`,
    metadata: { session_id: sessionId, why: "service_draining" },
  });
}

/** What a kill ends with likewise. Not to be repeated by itself: another signal than KILL would be sent twice. */
export function killLetGo(sessionId: SessionId): HoldfastError {
  return new HoldfastError("CANCELLATION_UNCONFIRMED", {
    message: `This process is stopping and let the call go before the guest had answered. Whether session ${sessionId} got the signal, or has ended, is not known: ListSessions tells how it stands. Nothing else was changed.`,
    metadata: { session_id: sessionId, why: "service_draining" },
  });
}
