import type { IncomingHttpHeaders } from "node:http";
import { at, integerOf, textOf } from "../objects/json.ts";

/** A complete answer of the API server, whatever it says. */
export interface ApiAnswer {
  readonly status: number;
  /** The JSON that was sent, or the text where it is not JSON. */
  readonly body: unknown;
  /** Undefined when the server did not say. */
  readonly retryAfterMs: number | undefined;
}

/** Composes an answer from what came. */
export function apiAnswerOf(status: number, headers: IncomingHttpHeaders, text: string, nowMs: number): ApiAnswer {
  const body = parsed(text);
  const secondsInBody = integerOf(at(body, "details", "retryAfterSeconds"));
  const fromBody = secondsInBody === undefined || secondsInBody < 0 ? undefined : secondsInBody * 1000;
  return { status, body, retryAfterMs: retryAfterHeaderMs(headers["retry-after"], nowMs) ?? fromBody };
}

/** True if the server says of this very object that it is not there; a 404 of a proxy or of a missing CRD does not. */
export function saysAbsent(answer: ApiAnswer, name: string): boolean {
  if (answer.status !== 404 && answer.status !== 410) return false;
  return reasonOf(answer) === "NotFound" || reasonOf(answer) === "Gone"
    ? at(answer.body, "details", "name") === name
    : false;
}

/** `reason` of the Status that was sent. */
export function reasonOf(answer: ApiAnswer): string | undefined {
  return at(answer.body, "kind") === "Status" ? textOf(at(answer.body, "reason")) : undefined;
}

const wordsMaxLength = 1_000;

/** The server's words: the Status' message, or the beginning of whatever else came. */
export function wordsOf(answer: ApiAnswer): string {
  const message = textOf(at(answer.body, "message"));
  const text = message ?? (typeof answer.body === "string" ? answer.body.trim() : JSON.stringify(answer.body));
  const words = text === "" ? "no explanation" : text;
  return words.length > wordsMaxLength ? `${words.slice(0, wordsMaxLength)}…` : words;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text; // A proxy's page: kept as text, and never taken for an object.
  }
}

/** Seconds or an HTTP date. */
export function retryAfterHeaderMs(value: string | undefined, nowMs: number): number | undefined {
  if (value === undefined) return undefined;
  if (/^\d{1,9}$/.test(value.trim())) return Number(value) * 1000;
  const at = Date.parse(value);
  return Number.isNaN(at) ? undefined : Math.max(0, at - nowMs);
}
