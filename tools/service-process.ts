import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";

const main = join(dirname(import.meta.dirname), "services/control-plane/src/main.ts");

/** A control plane or cluster in a process of its own. Disposing stops it. */
export interface ServiceProcess extends AsyncDisposable {
  readonly child: ChildProcess;
  /** What the line that announced it matched. */
  readonly announced: RegExpExecArray;
  /** Everything on standard output so far. */
  readonly lines: readonly string[];
  /** Sends SIGTERM and resolves with the exit code (or 128 + 9 for one that was killed). */
  stop(): Promise<number>;
  /** Sends SIGKILL and resolves when it is gone. */
  kill(): Promise<void>;
}

export interface ServiceProcessOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** Starts `main.ts` with these arguments and resolves when a line of its output matches `ready`. */
export async function startServiceProcess(
  argv: readonly string[],
  ready: RegExp,
  options: ServiceProcessOptions = {},
): Promise<ServiceProcess> {
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", main, ...argv], {
    stdio: ["ignore", "pipe", "inherit"],
    cwd: options.cwd,
    env: { ...process.env, HOLDFAST_LOG_LEVEL: process.env.HOLDFAST_LOG_LEVEL ?? "warn", ...options.env },
    // A group of its own: Ctrl-C on the parent ends it through the parent.
    detached: true,
  });
  const lines: string[] = [];
  const announced = await new Promise<RegExpExecArray>((resolve, reject) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      lines.push(line);
      const found = ready.exec(line);
      if (found) resolve(found);
    });
    child.once("error", reject);
    child.once("exit", (code) =>
      reject(new Error(`${argv[0]} ended with ${code} before it was ready:\n${lines.join("\n")}`)),
    );
  });
  const end = async (signal: NodeJS.Signals): Promise<number> => {
    if (child.exitCode === null && child.signalCode === null) {
      const exited = once(child, "exit");
      child.kill(signal);
      await exited;
    }
    return child.exitCode ?? 137;
  };
  const stop = (): Promise<number> => end("SIGTERM");
  return {
    child,
    announced,
    lines,
    stop,
    kill: async () => void (await end("SIGKILL")),
    [Symbol.asyncDispose]: async () => void (await stop()),
  };
}

/** The line with which a service says where it listens. */
export const serviceReady = /listens on (\S+:\d+)/;
/** The line with which a cluster that runs alone says how to use it. */
export const clusterReady = /npm start -- (--cluster kubernetes .*)$/;
