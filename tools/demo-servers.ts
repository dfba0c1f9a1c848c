import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";

/** Where the demo's service listens. Disposing stops what was started for it and removes its data. */
export interface DemoServers extends AsyncDisposable {
  readonly target: string;
}

/** Starts a service (and, when `separate`, a cluster of its own process) unless one is given by `target`. */
export async function startServers(wish: {
  readonly separate?: boolean;
  readonly target?: string;
}): Promise<DemoServers> {
  if (wish.target !== undefined) return { target: wish.target, [Symbol.asyncDispose]: async () => {} };
  const dataDir = await mkdtemp(join(tmpdir(), "holdfast-demo-"));
  const started: ChildProcess[] = [];
  const dispose = async (): Promise<void> => {
    for (const child of started.reverse()) await stop(child);
    await rm(dataDir, { recursive: true, force: true });
  };
  try {
    const clusterFlags = wish.separate ? await startCluster(started, dataDir) : ["--data-dir", dataDir];
    const ready = start(started, ["serve", "--listen", "127.0.0.1:0", ...clusterFlags], /listens on (\S+:\d+)/);
    return { target: (await ready)[1] ?? "", [Symbol.asyncDispose]: dispose };
  } catch (error) {
    await dispose();
    throw error;
  }
}

/** Starts the cluster alone and takes the flags of the line that it prints for the service. */
async function startCluster(started: ChildProcess[], dataDir: string): Promise<string[]> {
  const line = await start(started, ["cluster", "--data-dir", dataDir], /npm start -- (--cluster kubernetes .*)$/);
  return (line[1] ?? "").trim().split(/\s+/);
}

async function start(started: ChildProcess[], argv: string[], ready: RegExp): Promise<RegExpExecArray> {
  const main = join(dirname(import.meta.dirname), "services/control-plane/src/main.ts");
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", main, ...argv], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, HOLDFAST_LOG_LEVEL: process.env.HOLDFAST_LOG_LEVEL ?? "warn" },
    // A group of its own: Ctrl-C on the demo ends it through the demo.
    detached: true,
  });
  started.push(child);
  for await (const line of createInterface({ input: child.stdout })) {
    const found = ready.exec(line);
    if (found) {
      child.stdout.resume();
      return found;
    }
  }
  throw new Error(`${argv[0]} ended before it was ready`);
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  await exited;
}
