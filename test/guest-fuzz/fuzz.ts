import type { AgentRun } from "./agent-run.ts";
import { holdsWithin } from "./agent-run.ts";
import { Beside } from "./beside.ts";
import { corpus } from "./corpus.ts";
import { displacedReader } from "./displaced-reader.ts";
import { type FuzzCase, nextCase } from "./fuzz-case.ts";
import { playCase } from "./play-case.ts";
import { Random } from "./random.ts";
import type { Pools } from "./random-message.ts";
import { Tally } from "./tally.ts";

/** What must hold at the end, whatever was sent. */
export const bounds = {
  healthWithinMs: 10_000,
  /** Over what the agent had before the first case. */
  descriptorsMore: 8,
  /**
   * For what it may keep (the output of 1,024 commands; 100 MiB were seen after ten minutes), and for what the collector and the allocator
   * have not given back: it came to 260 MiB more within three minutes, and 290 after ten.
   */
  rssMoreBytes: 384 * 1024 * 1024,
  programsGoneWithinMs: 30_000,
} as const;

export interface FuzzReport {
  readonly tally: Tally;
  readonly beside: Beside;
  /** What was wrong; empty is well. */
  readonly violations: readonly string[];
  readonly figures: Readonly<Record<string, number>>;
}

export interface FuzzOptions {
  readonly seconds: number;
  readonly seed: number;
  readonly connections?: number;
  /** Goes on beyond the time until so many have been played. */
  readonly leastCases?: number;
  /** How long an answer, or a close, may take: generous, since the machine may be busy. */
  readonly answerWithinMs?: number;
  /** Stops at the first thing that is wrong. */
  readonly stopsAtFirst?: boolean;
}

const violationsMax = 10;
const recentIds = 12;

/** Sends the corpus, then cases of this seed for so long, from many connections at once, and looks after the agent meanwhile. */
export async function fuzz(agent: AgentRun, options: FuzzOptions): Promise<FuzzReport> {
  const { seconds, seed, connections = 12, leastCases = 0, answerWithinMs = 20_000 } = options;
  const random = new Random(seed);
  const tally = new Tally();
  const violations: string[] = [];
  const beside = await Beside.open(agent, new Random(seed + 1), tally);
  await beside.health(bounds.healthWithinMs);
  const [fdsBefore, rssBefore] = [agent.descriptors(), agent.rssBytes()];
  const endsAt = performance.now() + seconds * 1_000;
  const isWell = (): boolean => violations.length < (options.stopsAtFirst ? 1 : violationsMax) && !agent.hasEnded();
  const goesOn = (): boolean => isWell() && (performance.now() < endsAt || tally.cases < leastCases);
  const attachmentIds: string[] = [];
  const onAttachment = (id: string): void => {
    attachmentIds.push(id);
    if (attachmentIds.length > recentIds) attachmentIds.shift();
  };
  let ids = recentIds;
  let rssMost = rssBefore;

  const pools = (): Pools => {
    // Ids that were used stay used for a day, so new ones come in slowly.
    if (random.chance(0.2)) ids += 1;
    return {
      executionIds: Array.from({ length: recentIds }, (_, at) => `f${ids - at}`),
      sessionIds: Array.from({ length: 8 }, (_, at) => `s${at}`),
      attachmentIds,
      paths: [
        "a",
        "a.txt",
        "b/c",
        "b/c/d.txt",
        ".",
        "",
        "/",
        "../x",
        "/etc/passwd",
        "link",
        "b/../a",
        "./a",
        "b\0c",
        "\u{1f600}",
      ],
      ports: [beside.echoPort, agent.port, 0, 1, 65_536, 2 ** 32 - 1],
      bootId: agent.bootId,
      epoch: beside.epoch,
    };
  };
  const play = async (one: FuzzCase): Promise<void> => {
    const wrong = await playCase(agent, one, { tally, answerWithinMs, onAttachment });
    if (wrong !== undefined && !agent.hasEnded()) violations.push(wrong);
  };
  const sender = async (): Promise<void> => {
    while (goesOn()) await play(nextCase(random, pools()));
  };
  const keeper = async (): Promise<void> => {
    while (goesOn()) {
      try {
        const { bootId } = await beside.health(bounds.healthWithinMs);
        if (bootId !== agent.bootId) violations.push(`another agent process answers: ${bootId}`);
      } catch (error) {
        violations.push(`health was not answered within ${bounds.healthWithinMs} ms: ${error}`);
      }
      if (!agent.hasEnded()) rssMost = Math.max(rssMost, agent.rssBytes());
      await beside.round();
      if (options.stopsAtFirst) violations.push(...beside.wrong.splice(0));
    }
  };

  const displaced = await displacedReader(agent, tally, beside.epoch);
  if (displaced !== undefined) violations.push(displaced);
  for (const one of corpus()) if (isWell()) await play(one);
  await Promise.all([keeper(), ...Array.from({ length: connections }, sender)]);

  if (agent.hasEnded()) violations.push(`the agent ended:\n${agent.log().slice(-2_000)}`);
  else {
    try {
      await beside.health(bounds.healthWithinMs);
      await beside.endAll();
    } catch (error) {
      violations.push(`what ran could not be ended: ${error}`);
    }
  }
  beside.close();
  violations.push(...beside.wrong.slice(0, violationsMax));
  const defects = agent.log().match(/^(uncaught|unhandled rejection):.*$/gm) ?? [];
  violations.push(...defects.slice(0, violationsMax).map((line) => `the agent's log: ${line.slice(0, 500)}`));
  const ended = agent.hasEnded();
  if (!ended) {
    const isQuiet = (): boolean => agent.programs().every(({ name }) => name === "mkfifo");
    if (!(await holdsWithin(bounds.programsGoneWithinMs, isQuiet))) {
      violations.push(`programs are left: ${JSON.stringify(agent.programs())}`);
    }
    const fdsMost = fdsBefore + bounds.descriptorsMore;
    if (!(await holdsWithin(10_000, () => agent.descriptors() <= fdsMost))) {
      violations.push(`${agent.descriptors()} descriptors are open, ${fdsBefore} were before`);
    }
    if (!(await holdsWithin(10_000, () => agent.rssBytes() <= rssBefore + bounds.rssMoreBytes))) {
      violations.push(`${mib(agent.rssBytes())} MiB are resident, ${mib(rssBefore)} were before`);
    }
  }
  const figures = {
    "rss before, MiB": mib(rssBefore),
    "rss at most, MiB": mib(rssMost),
    "rss after, MiB": ended ? -1 : mib(agent.rssBytes()),
    "descriptors before": fdsBefore,
    "descriptors after": ended ? -1 : agent.descriptors(),
    "slowest health, ms": Math.round(beside.slowestHealthMs),
    ...Object.fromEntries(Object.entries(beside.done).map(([what, times]) => [`beside: ${what}`, times])),
  };
  return { tally, beside, violations, figures };
}

const mib = (bytes: number): number => Math.round(bytes / 1024 / 1024);
