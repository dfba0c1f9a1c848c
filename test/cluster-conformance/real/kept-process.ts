import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";

/** A program that dies with this process, whatever ends that one: the kernel sends it SIGKILL. */
export interface KeptProcess {
  /** Rejects when the program ends before it was asked to. Never resolves. */
  readonly failed: Promise<never>;
  stop(): Promise<void>;
}

const stopGraceMs = 10_000;

/** Starts a server whose output goes to a file. */
export function keepProcess(
  name: string,
  file: string,
  argv: readonly string[],
  logPath: string,
  env: Readonly<Record<string, string>> = {},
): KeptProcess {
  const child = spawnKept(file, argv, ["ignore", "pipe", "pipe"], env);
  const log = createWriteStream(logPath);
  child.stdout?.pipe(log, { end: false });
  child.stderr?.pipe(log, { end: false });
  child.once("close", () => log.end());
  let stopping = false;
  const failed = new Promise<never>((_, reject) => {
    child.once("error", reject);
    child.once("exit", (code, signal) => {
      if (!stopping) reject(new Error(`${name} ended with ${code ?? signal}; its output is in ${logPath}`));
    });
  });
  failed.catch(() => undefined); // whoever waits for it hears it
  return {
    failed,
    stop: async () => {
      stopping = true;
      await end(child);
    },
  };
}

/** Runs a program to its end, its output being ours; resolves with its exit code. An abort ends it with SIGTERM. */
export async function runKept(
  file: string,
  argv: readonly string[],
  signal: AbortSignal,
  env: Readonly<Record<string, string>> = {},
): Promise<number> {
  if (signal.aborted) return 130;
  const child = spawnKept(file, argv, ["ignore", "inherit", "inherit"], env);
  const stop = () => void end(child);
  signal.addEventListener("abort", stop, { once: true });
  try {
    const [code] = await once(child, "exit");
    return typeof code === "number" ? code : 137;
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

function spawnKept(
  file: string,
  argv: readonly string[],
  stdio: ["ignore", Outlet, Outlet],
  env: Readonly<Record<string, string>> = {},
): ChildProcess {
  // The second look closes the gap between fork and prctl: an orphan has another parent and does not begin.
  const begin = ["sh", "-c", 'test "$PPID" = "$0" && exec "$@"', String(process.pid), file, ...argv];
  // A group of its own: Ctrl-C reaches it through us.
  return spawn("setpriv", ["--pdeathsig", "KILL", ...begin], {
    stdio,
    detached: true,
    env: { ...process.env, ...env },
  });
}

type Outlet = "pipe" | "inherit";

async function end(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  const impatience = setTimeout(() => child.kill("SIGKILL"), stopGraceMs);
  await exited;
  clearTimeout(impatience);
}
