import { create } from "@bufbuild/protobuf";
import { type Status, StatusSchema } from "@holdfast/api/holdfast/guest/v1/link_pb";
import { AnsweredError } from "./link-errors.ts";

/** An answer may quote what it refuses, and that may be as long as a frame: with more than this it would not fit one itself. */
const quotedMaxBytes = 4 * 1024;

/** The answer that a handler's failure travels as. One that is no answer is a defect, and says so. */
export function statusOf(error: unknown): Status {
  if (error instanceof AnsweredError) {
    const { reason, message } = error;
    const metadata = Object.fromEntries(Object.entries(error.metadata).map(([key, value]) => [key, cut(value)]));
    return create(StatusSchema, { reason, message: cut(message), metadata });
  }
  const message = `A defect in the guest agent: ${error instanceof Error ? error.message : String(error)}`;
  return create(StatusSchema, { reason: "INTERNAL_ERROR", message: cut(message) });
}

/** The error that a status stands for; undefined for success. */
export function errorOf(status: Status | undefined): AnsweredError | undefined {
  if (status === undefined || status.reason === "") return undefined;
  return new AnsweredError(status.reason, status.message, status.metadata);
}

/** Its beginning and its end, where it is too long: what happened stands before what is quoted, and what to do after it. */
function cut(text: string): string {
  if (text.length * 3 <= quotedMaxBytes || Buffer.byteLength(text) <= quotedMaxBytes) return text;
  const half = quotedMaxBytes / 8;
  const [begin, end] = [text.slice(0, half), text.slice(-half)];
  return `${begin.toWellFormed()} … (${text.length - 2 * half} characters left out) … ${end.toWellFormed()}`;
}
