import type { HoldfastError } from "@holdfast/errors";
import type { Logger } from "pino";
import type { CallContext } from "../call-context.ts";
import type { CallSubject } from "./error-mapping.ts";

/** One line per call: what, about which workspace, by whom, how long, and how it ended. Never a request's content. */
export class CallLog {
  readonly #logger: Logger;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** The call is over; without an error it succeeded, or its client went away. */
  ended(subject: CallSubject, context: CallContext, durationMs: number, error: HoldfastError | undefined): void {
    const line = {
      rpc: subject.operation,
      ...(subject.workspaceId === undefined ? {} : { workspaceId: subject.workspaceId.slice(0, 64) }),
      requestId: context.requestId,
      peer: context.peer,
      durationMs: Math.round(durationMs * 1000) / 1000,
      ...(context.signal.aborted ? { clientGone: true } : {}),
    };
    if (error === undefined) this.#logger.info(line, "call");
    else if (error.status === "INTERNAL") {
      this.#logger.error({ ...line, reason: error.reason, err: defectOf(error) }, error.message);
    } else this.#logger.info({ ...line, reason: error.reason, cause: causesOf(error) }, error.message);
  }

  /** A handler's own clean-up failed after its client had gone: nobody is left to be told. */
  failedCleanUp(subject: CallSubject, error: unknown): void {
    this.#logger.warn(
      { rpc: subject.operation, requestId: subject.requestId, err: error },
      "clean-up after a call failed",
    );
  }
}

/** The thing that was thrown, with its stack: for the log only. */
function defectOf(error: HoldfastError): unknown {
  const thrown = error.cause;
  return thrown instanceof Error && thrown.cause !== undefined ? thrown.cause : thrown;
}

/** What lies behind the error, in words. */
function causesOf(error: HoldfastError): string | undefined {
  const said: string[] = [];
  let at: unknown = error.cause instanceof Error ? error.cause.cause : undefined;
  while (at !== undefined && said.length < 5) {
    said.push(at instanceof Error ? `${at.name}: ${at.message}` : String(at));
    at = at instanceof Error ? at.cause : undefined;
  }
  return said.length === 0 ? undefined : said.join(" ← ");
}
