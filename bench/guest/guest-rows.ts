import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { systemClock } from "../../packages/async/src/index.ts";
import { LinkClient } from "../../packages/guest-link/src/index.ts";
import type { Koffi } from "../../services/guest-agent/src/libc/koffi.ts";
import { PosixSpawner } from "../../services/guest-agent/src/spawn/posix-spawner.ts";
import { type AgentRun, runAgent } from "../../test/guest-fuzz/agent-run.ts";
import { runCommand } from "../../test/guest-fuzz/link-streams.ts";
import { type Row, spreadOf } from "../row.ts";
import { type Raw, startRaw } from "./raw.ts";
import { openTerminal, startEcho } from "./terminal.ts";

const samples = { commands: 300, keys: 400, outputs: 5, sessions: 64 };
const outputBytes = 128 * 1024 * 1024;
const startsPerSecond = 50;

interface Bench {
  readonly agent: AgentRun;
  readonly raw: Raw;
  readonly link: LinkClient;
}

/** The parts, in the order in which they run: what is resident is asked for before and after all else. */
const parts: Readonly<Record<string, (bench: Bench) => Promise<readonly Row[]>>> = {
  idle: async ({ agent, raw }) => [
    memoryRow("an idle agent", agent.rssBytes(), "a Node process with one TCP server", rssOf(raw.pid)),
  ],
  commands: ({ link }) => commands(link),
  keystrokes: ({ link, raw }) => keystrokes(link, raw),
  output: ({ link, raw }) => output(link, raw),
  sessions: ({ agent, link }) => sessionsMemory(agent, link),
};

/** The rows about one guest, or of one part. Each figure is measured in turn with what it is compared to. */
export async function guestRows(part?: string): Promise<readonly Row[]> {
  const wished = Object.entries(parts).filter(([name]) => part === undefined || name === part);
  if (wished.length === 0) throw new Error(`no part ${part}; there are: ${Object.keys(parts).join(", ")}`);
  await using agent = await runAgent();
  using raw = await startRaw();
  const link = new LinkClient(agent, systemClock);
  try {
    const rows: Row[] = [];
    for (const [, run] of wished) rows.push(...(await run({ agent, raw, link })));
    return rows;
  } finally {
    link.close();
  }
}

function memoryRow(work: string, ours: number, against: string, theirs: number): Row {
  return { work: `resident memory, ${work}`, unit: "MiB", ours: mib(ours), against, theirs: mib(theirs), target: "-" };
}

function rssOf(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;
}

async function sessionsMemory(agent: AgentRun, link: LinkClient): Promise<readonly Row[]> {
  const before = agent.rssBytes();
  for (let at = 1; at < samples.sessions; at += 1) await openTerminal(link, `s${at}`, "seq 2000; exec cat");
  return [memoryRow(`with ${samples.sessions} sessions`, agent.rssBytes(), "itself before them", before)];
}

async function commands(link: LinkClient): Promise<readonly Row[]> {
  const spawner = new PosixSpawner(koffi());
  const env = { PATH: process.env.PATH ?? "" };
  const [ours, started, node, posix]: [number[], number[], number[], number[]] = [[], [], [], []];
  for (let at = 0; at < samples.commands; at += 1) {
    let began = performance.now();
    const request = { executionId: `b${at}`, command: { command: "true" } };
    const outcome = await runCommand(link, request, 0n);
    ours.push(performance.now() - began);
    started.push(outcome.startedAtMs - began);
    began = performance.now();
    await new Promise((resolve) => spawn("true", { stdio: ["ignore", "pipe", "pipe"] }).once("close", resolve));
    node.push(performance.now() - began);
    began = performance.now();
    const stdio = [undefined, undefined, undefined] as const;
    await (await spawner.spawn({ command: "true", args: [], env, cwd: "/", stdio })).exited;
    posix.push(performance.now() - began);
  }
  const [a, s, n, p] = [ours, started, node, posix].map(spreadOf);
  if (!a || !s || !n || !p) throw new Error("no samples");
  const direct = "child_process.spawn, here";
  const bare = "posix_spawn, here";
  const row = (work: string, ours: number, against: string, theirs: number, target: string): Row => ({
    work,
    unit: "ms",
    ours,
    against,
    theirs,
    target,
  });
  return [
    row("a command, start to exit, p50", a.p50, direct, n.p50, "≤ 1.5, then ≤ 1.0"),
    row("a command, start to exit, p99", a.p99, direct, n.p99, "-"),
    row("a command, start to exit, p50", a.p50, bare, p.p50, "-"),
    row("a command, start to exit, p99", a.p99, bare, p.p99, "-"),
    row("a command, start to `started`, p50", s.p50, bare, p.p50, "-"),
  ];
}

async function keystrokes(link: LinkClient, raw: Raw): Promise<readonly Row[]> {
  const echo = await startEcho(link);
  const measured = async (work: string): Promise<readonly Row[]> => {
    const [ours, theirs]: [number[], number[]] = [[], []];
    for (let at = 0; at < samples.keys; at += 1) {
      ours.push(await echo.key());
      theirs.push(await raw.echo());
    }
    const [a, b] = [spreadOf(ours), spreadOf(theirs)];
    const against = "a raw TCP echo (one hop)";
    return [
      { work: `${work}, p50`, unit: "ms", ours: a.p50, against, theirs: b.p50, target: "-" },
      { work: `${work}, p99`, unit: "ms", ours: a.p99, against, theirs: b.p99, target: "≤ 5, and < 5 ms" },
    ];
  };
  const quiet = await measured("a keystroke's echo");
  let next = 0;
  const failures: unknown[] = [];
  const timer = setInterval(() => {
    const request = { executionId: `beside-${next++}`, command: { command: "true" } };
    runCommand(link, request, 0n).catch((error) => failures.push(error));
  }, 1_000 / startsPerSecond);
  try {
    const busy = await measured(`a keystroke's echo beside ${startsPerSecond} commands/s`);
    if (failures.length > 0) console.error(`${failures.length} of ${next} commands beside failed: ${failures[0]}`);
    return [...quiet, ...busy];
  } finally {
    clearInterval(timer);
  }
}

async function output(link: LinkClient, raw: Raw): Promise<readonly Row[]> {
  const [ours, socket, pipe]: [number[], number[], number[]] = [[], [], []];
  for (let at = 0; at < samples.outputs; at += 1) {
    ours.push(await linkOutput(link, `output-${at}`));
    socket.push(await raw.output(outputBytes));
    pipe.push(await pipeOutput());
  }
  const rate = (times: readonly number[]): number => mib(outputBytes) / (spreadOf(times).p50 / 1_000);
  const work = `output, ${mib(outputBytes)} MiB, median`;
  return [
    { work, unit: "MiB/s", ours: rate(ours), against: "a socket, through Node", theirs: rate(socket), target: "-" },
    { work, unit: "MiB/s", ours: rate(ours), against: "a pipe, read by Node", theirs: rate(pipe), target: "-" },
  ];
}

async function linkOutput(link: LinkClient, executionId: string): Promise<number> {
  let got = 0;
  const began = performance.now();
  const command = { command: "head", args: ["-c", String(outputBytes), "/dev/zero"] };
  await runCommand(link, { executionId, command }, 0n, (bytes) => {
    got += bytes.length;
  });
  if (got !== outputBytes) throw new Error(`${got} of ${outputBytes} bytes came`);
  return performance.now() - began;
}

async function pipeOutput(): Promise<number> {
  const began = performance.now();
  const program = spawn("head", ["-c", String(outputBytes), "/dev/zero"], { stdio: ["ignore", "pipe", "ignore"] });
  program.stdout.resume();
  await new Promise((resolve) => program.once("close", resolve));
  return performance.now() - began;
}

/** The addon as the bundle has it. */
function koffi(): Koffi {
  const directory = join(import.meta.dirname, "../../services/guest-agent/dist");
  return createRequire(import.meta.url)(join(directory, "koffi-glibc.node"));
}

const mib = (bytes: number): number => bytes / 1024 / 1024;
