import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { chownSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundleGuestAgent } from "../../services/guest-agent/bundle.ts";

/** A real agent process for one run, outside of any test runner. */
export interface AgentRun {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly host: string;
  readonly port: number;
  readonly token: string;
  readonly bootId: string;
  readonly root: string;
  /** What it has written to standard error. */
  log(): string;
  hasEnded(): boolean;
  rssBytes(): number;
  descriptors(): number;
  /** Programs of this guest that are there, zombies included. */
  programs(): readonly Seen[];
  [Symbol.asyncDispose](): Promise<void>;
}

export interface Seen {
  readonly pid: number;
  readonly name: string;
  readonly state: string;
}

export interface AgentRunOptions {
  /** Before the agent's entry, as `--import` and a file. */
  readonly nodeArgs?: readonly string[];
  /** Another file than the bundle's own. */
  readonly entry?: string;
  /** Runs this, with Node and what follows as further arguments. */
  readonly around?: readonly string[];
  readonly uid?: number;
  readonly env?: NodeJS.ProcessEnv;
}

const host = "127.34.0.1";

/** Resolves once it serves. */
export async function runAgent(options: AgentRunOptions = {}): Promise<AgentRun> {
  const bundle = await bundleGuestAgent();
  const base = mkdtempSync(join(tmpdir(), "holdfast-guest-run-"));
  const root = join(base, "workspace");
  mkdirSync(root);
  const token = randomUUID();
  const { uid } = options;
  if (uid !== undefined) for (const path of [base, root]) chownSync(path, uid, uid);
  const line = [process.execPath, ...(options.nodeArgs ?? []), options.entry ?? bundle.entry];
  const [program = process.execPath, ...args] = [...(options.around ?? []), ...line];
  const child = spawn(program, args, {
    stdio: ["ignore", "ignore", "pipe"],
    ...(uid === undefined ? {} : { uid, gid: uid }),
    env: {
      ...process.env,
      HOLDFAST_AGENT_TOKEN: token,
      HOLDFAST_AGENT_HOST: host,
      HOLDFAST_AGENT_PORT: "0",
      HOLDFAST_AGENT_SOCKET: join(base, "agent.sock"),
      HOLDFAST_WORKSPACE_ROOT: root,
      ...options.env,
    },
  });
  let log = "";
  let ended = false;
  const exited = new Promise<void>((resolve) =>
    child.once("exit", () => {
      ended = true;
      resolve();
    }),
  );
  const serving = await new Promise<RegExpExecArray>((resolve, reject) => {
    child.stderr?.on("data", (chunk) => {
      log = (log + chunk).slice(-64 * 1024);
      const match = /serving on [\d.]+:(\d+), boot ([^,]+),/.exec(log);
      if (match) resolve(match);
    });
    child.once("error", reject);
    void exited.then(() => reject(new Error(`the agent ended before it served:\n${log}`)));
  });
  const [, port = "", bootId = ""] = serving;
  const { pid } = child;
  if (pid === undefined) throw new Error("the agent has no pid");
  return {
    child,
    pid,
    host,
    port: Number(port),
    token,
    bootId,
    root,
    log: () => log,
    hasEnded: () => ended,
    rssBytes: () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024,
    descriptors: () => readdirSync(`/proc/${pid}/fd`).length,
    programs: () => programsOf(pid, bootId),
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await exited;
      for (const one of programsOf(pid, bootId)) kill(one.pid);
      for (const one of standingIn(root)) kill(one);
      rmSync(base, { recursive: true, force: true });
    },
  };
}

/** The agent's children, and whatever carries the entry that it gives to all that it starts. */
function programsOf(agent: number, bootId: string): readonly Seen[] {
  const found: Seen[] = [];
  for (const pid of allPids()) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
      const close = stat.lastIndexOf(")");
      const [state = "", parent] = stat.slice(close + 2).split(" ");
      const name = stat.slice(stat.indexOf("(") + 1, close);
      const isMarked = readFileSync(`/proc/${pid}/environ`, "latin1").includes(`HOLDFAST_GUEST=${bootId}`);
      if (Number(parent) === agent || isMarked) found.push({ pid, name, state });
    } catch {
      // Gone meanwhile, or another user's.
    }
  }
  return found;
}

function standingIn(root: string): readonly number[] {
  return allPids().filter((pid) => {
    try {
      return readlinkSync(`/proc/${pid}/cwd`).startsWith(root);
    } catch {
      return false; // Gone meanwhile, or another user's.
    }
  });
}

function allPids(): readonly number[] {
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => Number.isInteger(pid) && pid > 1);
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // Gone meanwhile.
  }
}

/** Resolves with true once it holds, false when it does not within the time; looks again and again, since it is about another process. */
export async function holdsWithin(ms: number, holds: () => boolean): Promise<boolean> {
  const endsAt = performance.now() + ms;
  while (!holds()) {
    if (performance.now() > endsAt) return false;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return true;
}
