import { ApiStatusError } from "../api-status-error.ts";
import type { Loss } from "./fault-rule.ts";
import type { LateOutcome } from "./faults.ts";

/** What is decided of one request that met a rule. */
export type Fate =
  | { readonly t: "continue" }
  | { readonly t: "fail"; readonly error: ApiStatusError }
  | { readonly t: "dropUnapplied"; readonly loss: Loss }
  | { readonly t: "applyThenDrop"; readonly loss: Loss }
  | { readonly t: "applyLate"; readonly loss: Loss; readonly later: Later };

/** A request without an answer that may still be carried out. */
export interface Later {
  /** Resolves with true when it is to be carried out, with false when it never is. */
  readonly due: Promise<boolean>;
  /** Told what the server would have answered. */
  readonly landed: (outcome: LateOutcome) => void;
}

/** The caller was left without an answer: its request may have been carried out, or not, or be yet to come. */
export class LostReplyError extends Error {
  constructor() {
    super("The connection was lost before an answer came. Whether the request was carried out is not known.");
    this.name = "LostReplyError";
  }
}

/** The watch's connection was cut. */
export class LostWatchError extends Error {
  constructor() {
    super("The connection of the watch was lost. Take it up again from the last version seen.");
    this.name = "LostWatchError";
  }
}

/** The server's own 504, which tells as little as a cut connection. */
export const timedOut = (): ApiStatusError =>
  refusalOf(504, "Timeout", "Timeout: request did not complete within requested timeout - context deadline exceeded");

/** A refusal of the rule's choice. */
export function refusalOf(code: number, reason: string, message: string, retryAfterSeconds?: number): ApiStatusError {
  return new ApiStatusError({
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    message,
    reason,
    details: retryAfterSeconds === undefined ? {} : { retryAfterSeconds },
    code,
  });
}

const reasons: Readonly<Record<number, string>> = {
  400: "BadRequest",
  401: "Unauthorized",
  403: "Forbidden",
  404: "NotFound",
  409: "Conflict",
  410: "Expired",
  422: "Invalid",
  429: "TooManyRequests",
  500: "InternalError",
  503: "ServiceUnavailable",
  504: "Timeout",
};

/** The reason that the real server gives with a code. */
export const reasonOf = (code: number): string => reasons[code] ?? "";
