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
  // A log that cannot be written ends nothing. On a full disk the next line tries again; on a pipe that was closed or a terminal
  // that was, nobody will ever read one.
  out.on("error", (error: NodeJS.ErrnoException) => {
    readerGone ||= error.code === "EPIPE" || error.code === "EIO";
  });
  const close = async (): Promise<void> => {
    if (!readerGone) {
      const { promise: over, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, closeMaxMs);
      out.once("close", resolve);
      out.once("error", resolve);
      out.end();
      await over;
      clearTimeout(timer);
    }
    // Always, else pino flushes an open log at the exit, and that waits for ever where nothing can be written.
    out.destroy();
  };
  // Only write: pino would flush synchronously at a fatal line, with the same wait.
  const stream: DestinationStream = {
    write: (line) => {
      if (!readerGone) out.write(line);
    },
  };
  return { logger: loggerOn(level, stream), close };
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
