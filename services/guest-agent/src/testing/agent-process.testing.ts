import { type ChildProcess, spawn } from "node:child_process";
import { chownSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Deadline, systemClock } from "@holdfast/async";
import { LinkClient } from "@holdfast/guest-link";
import { onTestFinished } from "vitest";
import { bundleGuestAgent } from "../../bundle.ts";

export const host = "127.32.0.1";
export const token = "5d2a1f0e-9a3f-4d8e-b0a5-3f1f6f0c7a11";

export interface AgentProcess {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly port: number;
  readonly link: LinkClient;
  /** The workspace's root, for this agent alone. */
  readonly root: string;
  readonly directory: string;
  readonly socket: string;
  /** Resident memory in bytes. */
  rss(): number;
  /** What it has written to standard error. */
  log(): string;
  /** Resolves with its exit code or signal. */
  readonly exited: Promise<number | NodeJS.Signals | null>;
}

export const soon = (ms = 10_000): Deadline => new Deadline(systemClock, ms);

/** How an agent is run that is not run plainly. */
export interface AgentRun {
  /** Runs this, with Node and the agent's entry as further arguments. */
  readonly around?: readonly [string, ...string[]];
  /** Another file than the bundle's own. */
  readonly entry?: string;
  /** Who owns its root and its socket's directory, when it is not `uid`. */
  readonly owner?: number;
  /** The test's own `onTestFinished`. Tests that run side by side must give it: vitest's global one takes another's end for theirs. */
  readonly finished?: (end: () => Promise<void>) => void;
}

/** Runs the real, bundled agent for one test, on a port of its own. With a uid, as that user and owning its root. */
export async function agentProcess(
  env: NodeJS.ProcessEnv = {},
  uid?: number,
  run: AgentRun = {},
): Promise<AgentProcess> {
  const bundle = await bundleGuestAgent();
  const { directory } = bundle;
  const [program, ...args] = [...(run.around ?? []), process.execPath, run.entry ?? bundle.entry];
  if (program === undefined) throw new Error("nothing to run");
  const root = mkdtempSync(join(tmpdir(), "holdfast-agent-test-"));
  const socket = join(mkdtempSync(join(tmpdir(), "holdfast-agent-socket-")), "agent.sock");
  const owner = run.owner ?? uid;
  if (owner !== undefined) for (const path of [root, dirname(socket)]) chownSync(path, owner, owner);
  const child = spawn(program, args, {
    stdio: ["ignore", "ignore", "pipe"],
    ...(uid === undefined ? {} : { uid, gid: uid }),
    env: {
      ...process.env,
      HOME: root, // as in a pod; login shells must not run what this machine's user has set up
      HOLDFAST_AGENT_TOKEN: token,
      HOLDFAST_AGENT_HOST: host,
      HOLDFAST_AGENT_PORT: "0",
      HOLDFAST_AGENT_SOCKET: socket,
      HOLDFAST_WORKSPACE_ROOT: root,
      ...env,
    },
  });
  const exited = new Promise<number | NodeJS.Signals | null>((resolve) =>
    child.once("exit", (code, signal) => resolve(signal ?? code)),
  );
  let log = "";
  const port = await new Promise<number>((resolve, reject) => {
    child.stderr.on("data", (chunk) => {
      log += chunk;
      const match = /serving on [\d.]+:(\d+),/.exec(log);
      if (match) resolve(Number(match[1]));
    });
    exited.then((how) => reject(new Error(`the agent ended with ${how}:\n${log}`)));
  });
  const link = new LinkClient({ host, port, token }, systemClock);
  (run.finished ?? onTestFinished)(async () => {
    link.close();
    child.kill("SIGKILL");
    await exited;
    endProcessesIn(root);
    rmSync(root, { recursive: true, force: true });
    rmSync(dirname(socket), { recursive: true, force: true });
  });
  const { pid } = child;
  if (pid === undefined) throw new Error("the agent has no pid");
  return {
    child,
    pid,
    port,
    link,
    root,
    directory,
    socket,
    exited,
    rss: () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024,
    log: () => log,
  };
}

/** What a killed agent leaves behind: everything that stands in the test's own workspace. */
function endProcessesIn(root: string): void {
  for (const entry of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      if (readlinkSync(`/proc/${entry}/cwd`).startsWith(root)) process.kill(Number(entry), "SIGKILL");
    } catch {
      // Gone meanwhile, or another user's.
    }
  }
}

/** Never 0 or undefined: a signal to "process 0" goes to the test runner's own group. */
export function pidOf(child: ChildProcess): number {
  if (!child.pid) throw new Error("the process was not started");
  return child.pid;
}

/** Resolves once it holds; polls, since it is about another process. */
export async function eventually(holds: () => boolean | Promise<boolean>, withinMs = 5_000): Promise<void> {
  const endsAt = performance.now() + withinMs;
  while (!(await holds())) {
    if (performance.now() > endsAt) throw new Error(`did not become true within ${withinMs} ms: ${holds}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
