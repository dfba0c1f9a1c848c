import type { AttachmentId, SessionId } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import type { Handle } from "../state/handle.ts";

/** What becomes of a call on a session whose link broke after something was sent. Programs go on while their pod does. */

/** The start of a program was sent and not answered. */
export function openUnknown(ws: Handle, sessionId: SessionId, cause: Error): HoldfastError {
  return new HoldfastError("SESSION_OUTCOME_UNKNOWN", {
    message: `The link to the guest of workspace ${ws.id} broke while session ${sessionId} was being started (${cause.message}). It runs under this id, was never started, or ended with the guest's agent or pod: ListSessions tells whether it runs.`,
    metadata: { session_id: sessionId },
    cause,
  });
}

export interface LostAttachment {
  readonly sessionId: SessionId;
  readonly attachmentId: AttachmentId | undefined;
  /** Up to where output was delivered. */
  readonly offset: number;
}

/** An attachment's link is gone for good. */
export function attachLost(
  ws: Handle,
  { sessionId, attachmentId, offset }: LostAttachment,
  cause: Error,
): HoldfastError {
  return new HoldfastError("SESSION_DETACHED", {
    message: `The link to the guest of workspace ${ws.id} was lost (${cause.message}). Session ${sessionId} was not ended by the service; its program goes on while its pod does. Attach to it from offset ${offset}.`,
    metadata: { session_id: sessionId, offset: String(offset), attachment_id: attachmentId ?? "" },
    cause,
  });
}

/** A change that may be asked for again: `what` is open. */
export function sendAgain(ws: Handle, sessionId: SessionId, what: string, cause: Error): HoldfastError {
  return new HoldfastError("SESSION_DETACHED", {
    message: `${what}: the link to the guest of workspace ${ws.id} broke, or it did not answer in time (${cause.message}). Session ${sessionId} goes on while its pod does. Send the same again; input that was written is not written twice.`,
    metadata: { session_id: sessionId },
    cause,
  });
}

export function killUnconfirmed(ws: Handle, sessionId: SessionId, cause: Error): HoldfastError {
  return new HoldfastError("CANCELLATION_UNCONFIRMED", {
    message: `The guest of workspace ${ws.id} was asked to end session ${sessionId} and did not answer (${cause.message}). Whether it runs is not known: ask again, or read the session.`,
    metadata: { session_id: sessionId },
    cause,
  });
}

/** Nothing was changed by a call that only reads. */
export function readLost(ws: Handle, cause: Error): HoldfastError {
  return new HoldfastError("AGENT_UNREACHABLE", {
    message: `The link to the guest of workspace ${ws.id} broke during the call (${cause.message}). Nothing was changed. Call again.`,
    cause,
  });
}
