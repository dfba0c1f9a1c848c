import { type Reason, reasons } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import { AnsweredError, LinkLost, LinkProtocolError, NothingSent } from "@holdfast/guest-link";
import { GuestLost, GuestNotReached } from "@holdfast/workspace";

/** What a failure of the link means to the domain. What is not the link's (a deadline, a cancellation) is passed on as it is. */
export function guestErrorOf(error: unknown): unknown {
  if (error instanceof NothingSent) {
    const why = error.why === "capacity" || error.why === "closed" ? "no-connection" : error.why;
    return new GuestNotReached(why, error.message, error);
  }
  if (error instanceof AnsweredError) return answerOf(error);
  if (error instanceof LinkLost || error instanceof LinkProtocolError) return new GuestLost(error.message, error);
  return error;
}

/** A call of the link, failing as the domain understands it. */
export function translated<T>(call: Promise<T>): Promise<T> {
  return call.catch((error) => {
    throw guestErrorOf(error);
  });
}

function answerOf(error: AnsweredError): HoldfastError {
  const { reason, message, metadata } = error;
  if (isReason(reason)) return new HoldfastError(reason, { message, metadata, cause: error });
  return new HoldfastError("INTERNAL_ERROR", {
    message: `The guest answered ${reason}, which this release does not know: ${message}`,
    metadata: { ...metadata, guest_reason: reason },
    cause: error,
  });
}

function isReason(text: string): text is Reason {
  return Object.hasOwn(reasons, text);
}
