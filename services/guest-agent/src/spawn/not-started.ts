import { startsHeldAfterMs } from "@holdfast/contract";
import { AnsweredError } from "@holdfast/guest-link";

/** As a shell would say it: a result, not a failure. */
export interface NotStarted {
  readonly t: "not-started";
  readonly code: 126 | 127;
  readonly message: string;
}

/** The kernel has not answered another start for long. Nothing was begun. */
export class StartsHeld extends Error {
  constructor(program: string) {
    super(
      `programs are started one after the other, and for ${startsHeldAfterMs / 1_000} s the kernel has not answered the start of ${program}, ` +
        "as where its file cannot be read. Nothing was begun. Mend the file system that it is on and try again, or suspend and resume the workspace.",
    );
    this.name = "StartsHeld";
  }
}

/** The agent stops: nothing is begun any more. */
export function retiring(): AnsweredError {
  return new AnsweredError("AGENT_RETIRING", "Nothing was started: the guest has been asked to stop.");
}

/**
 * What a failed spawn is to whoever asked for it. Throws AnsweredError when it was the guest that lacked something: what `noRoom` says
 * for want of room, by the kernel's `code`, or by the reason why it had no turn.
 */
export function notStarted(
  command: string,
  error: unknown,
  noRoom: (code: string, why?: string) => AnsweredError,
): NotStarted {
  if (error instanceof AnsweredError) throw error;
  if (error instanceof StartsHeld) throw noRoom("starts-held", error.message);
  const code = codeOf(error);
  switch (code) {
    case "ENOENT":
    case "ENOTDIR":
      return { t: "not-started", code: 127, message: `${command}: no such program` };
    case "EAGAIN":
    case "ENOMEM":
    case "EMFILE":
    case "ENFILE":
    case "ENOSPC": // Of terminals: the kernel has a limit.
      throw noRoom(code);
    case "E2BIG":
      throw new AnsweredError(
        "INVALID_REQUEST",
        `${command} was not started: its arguments and environment together are longer than the kernel takes (E2BIG).`,
        { field: "args" },
      );
    default: {
      const why = code || (error instanceof Error ? error.message : String(error));
      return { t: "not-started", code: 126, message: `${command}: cannot be executed (${why})` };
    }
  }
}

/** Of an error of the kernel; "" for any other. */
export function codeOf(error: unknown): string {
  return typeof error === "object" && error !== null && "code" in error ? String(error.code) : "";
}
