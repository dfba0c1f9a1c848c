import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "@holdfast/api/google/rpc/error_details_pb";
import { printable } from "./printable.ts";

/** A command line that cannot mean anything, though it parses. */
export class UsageError extends Error {}

/** What Holdfast itself failing exits with in `exec`, so that it differs from the command's own codes. */
export const execFailedCode = 125;

/** 2 for usage, 1 for all else; a command's own code is set where it is known. */
export function exitCodeOf(error: unknown): number {
  return error instanceof UsageError ? 2 : 1;
}

/** One line for people: the reason, what happened, what to do. What a workspace named is in it only as a terminal may show it. */
export function wordsOf(error: unknown): string {
  return printable(plainWordsOf(error));
}

function plainWordsOf(error: unknown): string {
  if (!(error instanceof ConnectError)) return error instanceof Error ? error.message : String(error);
  const reason = error.findDetails(ErrorInfoSchema)[0]?.reason;
  if (reason !== undefined) return `${reason}: ${error.rawMessage}`;
  if (error.code === Code.Unavailable) {
    return `the service was not reached (${error.rawMessage}); start it with npm start, or name it with --server`;
  }
  return `${Code[error.code]}: ${error.rawMessage}`;
}
