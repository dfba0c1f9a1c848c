import { ApiStatusError, type StatusBody } from "../../api-status-error.ts";
import { internalError } from "../refusals.ts";

/** An answer that is whole before it is sent. */
export interface Reply {
  readonly code: number;
  readonly contentType: string;
  readonly body: string | Buffer;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
}

export function jsonReply(code: number, value: unknown): Reply {
  return { code, contentType: "application/json", body: JSON.stringify(value) };
}

/** A reply whose body is JSON text already. */
export function textOfJsonReply(code: number, body: string): Reply {
  return { code, contentType: "application/json", body };
}

export function textReply(code: number, body: string): Reply {
  return { code, contentType: "text/plain; charset=utf-8", body };
}

/** The refusal that a thrown value comes to; anything unforeseen is a 500 that names it. */
export function refusalOf(error: unknown): ApiStatusError {
  if (error instanceof ApiStatusError) return error;
  return internalError(error instanceof Error ? error.message : String(error));
}

export function refusalReply(status: StatusBody): Reply {
  const seconds = status.details?.retryAfterSeconds;
  const reply = jsonReply(status.code, status);
  return seconds === undefined ? reply : { ...reply, headers: { "retry-after": String(seconds) } };
}
