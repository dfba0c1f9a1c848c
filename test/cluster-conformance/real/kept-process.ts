import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";

/** A program that dies with this process, whatever ends that one: the kernel sends it SIGKILL. */
export interface KeptProcess {
  readonly name: string;
  /** Rejects when the program ends before it was asked to. Never resolves. */
  readonly failed: Promise<never>;
  stop(): Promise<void>;
}

const stopGraceMs = 10_000;

/** Starts a program whose output goes to a file. */
export function keepProcess(name: string, file: string, argv: readonly string[], logPath: string): KeptProcess {
  // The second look closes the gap between fork and prctl: an orphan has another parent and does not begin.
  const child = spawn(
    "setpriv",
    ["--pdeathsig", "KILL", "sh", "-c", 'test "$PPID" = "$0" && exec "$@"', String(process.pid), file, ...argv],
    { stdio: ["ignore", "pipe", "pipe"], detached: true }, // a group of its own: Ctrl-C reaches it through us
  );
  const log = createWriteStream(logPath);
  child.stdout.pipe(log, { end: false });
  child.stderr.pipe(log, { end: false });
  let stopping = false;
  const failed = new Promise<never>((_, reject) => {
    child.once("error", reject);
    child.once("exit", (code, signal) => {
      log.end();
      if (!stopping) reject(new Error(`${name} ended with ${code ?? signal}; its output is in ${logPath}`));
    });
  });
  failed.catch(() => undefined); // whoever waits for it hears it
  return {
    name,
    failed,
    stop: async () => {
      stopping = true;
      await end(child);
    },
  };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  const impatience = setTimeout(() => child.kill("SIGKILL"), stopGraceMs);
  await exited;
  clearTimeout(impatience);
}
