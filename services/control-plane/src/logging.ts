import { type DestinationStream, destination, type Logger, pino } from "pino";
import type { LogLevel } from "./config/service-config.ts";

/** The log, and the way to be sure that it is written before the process ends. */
export interface ServiceLog {
  readonly logger: Logger;
  flush(): void;
}

/** Bytes of log that wait for a reader of stderr; older ones are kept, newer ones dropped, and the service never waits. */
const logBufferMaxBytes = 4 * 1024 * 1024;

/** Structured lines on stderr. */
export function openLog(level: LogLevel): ServiceLog {
  const out = destination({ dest: 2, sync: false, maxLength: logBufferMaxBytes });
  let open = false;
  out.once("ready", () => {
    open = true;
  });
  return { logger: loggerOn(level, out), flush: () => void (open && out.flushSync()) };
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
