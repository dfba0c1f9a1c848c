import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { systemClock } from "../../packages/async/src/index.ts";
import { LinkClient } from "../../packages/guest-link/src/index.ts";
import { PosixSpawner } from "../../services/guest-agent/src/spawn/posix-spawner.ts";
import { type AgentRun, runAgent } from "../../test/guest-fuzz/agent-run.ts";
import { runCommand } from "../../test/guest-fuzz/link-streams.ts";
import { type Row, spreadOf } from "../row.ts";
import { koffi } from "./addon.ts";
import { keystrokes } from "./keystrokes.ts";
import { type Raw, startRaw } from "./raw.ts";
import { openTerminal } from "./terminal.ts";

const samples = { commands: 300, batches: 8, outputs: 5, sessions: 64 };
const atOnce = 64;
const outputBytes = 128 * 1024 * 1024;

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
  many: ({ link }) => manyCommands(link),
  keystrokes: ({ agent, link, raw }) => keystrokes(agent, link, raw),
  output: ({ link, raw }) => output(link, raw),
  sessions: ({ agent, link }) => sessionsMemory(agent, link),
};

/** The names of the parts. */
export const guestParts: readonly string[] = Object.keys(parts);

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

async function manyCommands(link: LinkClient): Promise<readonly Row[]> {
  const [ours, node]: [number[], number[]] = [[], []];
  const rateOf = async (run: (at: number) => Promise<unknown>): Promise<number> => {
    const began = performance.now();
    await Promise.all(Array.from({ length: atOnce }, (_, at) => run(at)));
    return atOnce / ((performance.now() - began) / 1_000);
  };
  for (let batch = 0; batch < samples.batches; batch += 1) {
    ours.push(
      await rateOf((at) => runCommand(link, { executionId: `m${batch}-${at}`, command: { command: "true" } }, 0n)),
    );
    node.push(
      await rateOf(
        () => new Promise((done) => spawn("true", { stdio: ["ignore", "pipe", "pipe"] }).once("close", done)),
      ),
    );
  }
  const [a, b] = [spreadOf(ours), spreadOf(node)];
  const against = `${atOnce} of child_process.spawn, here`;
  return [
    { work: `${atOnce} commands at once, median`, unit: "/s", ours: a.p50, against, theirs: b.p50, target: "≥ 0.6" },
  ];
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

const mib = (bytes: number): number => bytes / 1024 / 1024;
