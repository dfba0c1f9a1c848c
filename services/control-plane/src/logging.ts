import { type DestinationStream, destination, type Logger, pino } from "pino";
import type { LogLevel } from "./config/service-config.ts";

/** The log, and the way to be sure that it is written before the process ends. */
export interface ServiceLog {
  readonly logger: Logger;
  /** Ends the log. Resolves when it is written, cannot be, or has had a second for it. */
  close(): Promise<void>;
}

/** Bytes of log that wait for a reader of stderr; older ones are kept, newer ones dropped, and the service never waits. */
const logBufferMaxBytes = 4 * 1024 * 1024;
/** How long the end of the process waits for a reader that stands still. */
const closeMaxMs = 1_000;

/** Structured lines on stderr. */
export function openLog(level: LogLevel, fd = 2): ServiceLog {
  const out = destination({ dest: fd, sync: false, maxLength: logBufferMaxBytes });
  let readerGone = false;
  // A log that cannot be written, on a full disk as on a closed pipe, ends nothing; the next line tries again.
  out.on("error", (error: NodeJS.ErrnoException) => {
    readerGone ||= error.code === "EPIPE";
  });
  const close = async (): Promise<void> => {
    if (readerGone) return;
    const { promise: over, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, closeMaxMs);
    out.once("close", resolve);
    out.once("error", resolve);
    // Neither flushSync here nor the one that pino makes at the exit of an open log: it waits for ever where nothing can be written.
    out.end();
    await over;
    clearTimeout(timer);
    out.destroy();
  };
  return { logger: loggerOn(level, out), close };
}

/** A logger on any stream. What is given to it is chosen, and holds nothing of a request's content. */
export function loggerOn(level: LogLevel, out: DestinationStream): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    out,
  );
}

/** The logger of a part that logs facts as it finds them: what could carry a secret is cut out by name. */
export function partLogger(logger: Logger, part: string): Logger {
  const paths = secretNames.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]);
  return logger.child({ part }, { redact: { paths, censor: "[redacted]" } });
}

const secretNames = ["token", "podUid", "pod_uid", "env", "stdin", "authorization", "password", "kubeconfig"];
