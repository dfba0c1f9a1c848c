import { setTimeout as delay } from "node:timers/promises";
import { fromBinary } from "@bufbuild/protobuf";
import { ExecutionService } from "@holdfast/api/holdfast/guest/v1/execution_pb";
import {
  AttachMode,
  AttachSessionResponseSchema,
  SessionKind,
  SessionService,
} from "@holdfast/api/holdfast/guest/v1/session_pb";
import { Deadline, systemClock } from "@holdfast/async";
import { type CallerStream, LinkClient, NothingSent } from "@holdfast/guest-link";
import { type AgentRun, holdsWithin } from "../guest-fuzz/agent-run.ts";
import { runCommand } from "../guest-fuzz/link-streams.ts";
import type { Random } from "../guest-fuzz/random.ts";
import { type Held, heldBy } from "./watched-agent.ts";

export interface SoakSizes {
  readonly commands: number;
  readonly terminals: number;
  readonly attaches: number;
}

/** What an agent may hold more after a part than before it. */
export const soakBounds = {
  descriptorsMore: 5,
  /** Attachments whose stream was lost wait a minute for it, at most 256 observers of a session. */
  timersMore: 280,
  heapMoreMib: 64,
  settledWithinMs: 15_000,
} as const;

export interface SoakPart {
  readonly name: string;
  readonly seconds: number;
  readonly before: Held;
  readonly after: Held;
  /** Nothing was sent, as where a busy machine made a dial late; each was tried again. */
  readonly redialled: number;
  readonly wrong: readonly string[];
}

const wrongMax = 10;
const atOnce = 12;

/** Runs the three parts one after the other on one agent, and looks after each at what it holds. */
export async function soak(agent: AgentRun, sizes: SoakSizes, random: Random): Promise<readonly SoakPart[]> {
  const link = new LinkClient(agent, systemClock);
  try {
    return [
      await part(agent, "commands with a background child", (found) => commands(link, sizes.commands, found)),
      await part(agent, "terminals", (found) => terminals(link, sizes.terminals, found)),
      await part(agent, "attaches cancelled", (found) => attaches(link, sizes.attaches, random, found)),
    ];
  } finally {
    link.close();
  }
}

/** What one part found while it ran. */
interface Found {
  readonly wrong: string[];
  redialled: number;
}

async function part(agent: AgentRun, name: string, run: (found: Found) => Promise<void>): Promise<SoakPart> {
  const before = await heldBy(agent);
  const found: Found = { wrong: [], redialled: 0 };
  const { wrong } = found;
  const began = performance.now();
  await run(found);
  const seconds = Math.round((performance.now() - began) / 1_000);
  await holdsWithin(
    soakBounds.settledWithinMs,
    () => agent.programs().length === 0 && agent.descriptors() <= before.descriptors + soakBounds.descriptorsMore,
  );
  const after = await heldBy(agent);
  if (after.programs > 0) wrong.push(`processes are left: ${JSON.stringify(agent.programs().slice(0, 5))}`);
  const more = (what: keyof Held, bound: number): void => {
    if (after[what] > before[what] + bound) wrong.push(`${what}: ${before[what]} before, ${after[what]} after`);
  };
  more("descriptors", soakBounds.descriptorsMore);
  more("timers", soakBounds.timersMore);
  more("heapMib", soakBounds.heapMoreMib);
  const defects = agent.log().match(/^(uncaught|unhandled rejection):.*$/gm) ?? [];
  wrong.push(...defects.slice(0, wrongMax));
  return { name, seconds, before, after, redialled: found.redialled, wrong: wrong.slice(0, wrongMax) };
}

/** `count` times, so many at once. What fails is told and does not stop the others; what was not sent may be tried again. */
async function repeat(count: number, found: Found, run: (at: number) => Promise<void>): Promise<void> {
  let next = 0;
  const once = async (at: number, triesLeft: number): Promise<void> => {
    try {
      await run(at);
    } catch (error) {
      if (!(error instanceof NothingSent) || triesLeft === 0) throw error;
      found.redialled += 1;
      await once(at, triesLeft - 1);
    }
  };
  const worker = async (): Promise<void> => {
    while (next < count && found.wrong.length < wrongMax) {
      const at = next++;
      await once(at, 5).catch((error) => found.wrong.push(`${at}: ${error}`));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

function commands(link: LinkClient, count: number, found: Found): Promise<void> {
  return repeat(count, found, async (at) => {
    const command = { command: "sh", args: ["-c", "(sleep 0.2 &) ; exit 7"] };
    const { end } = await runCommand(link, { executionId: `c${at}`, command }, 0n);
    if (end !== "code 7") found.wrong.push(`command ${at} ended with ${end}`);
  });
}

const ways = ["exits", "is killed", "goes with its client", "exits, and a child holds the terminal"] as const;

async function terminals(link: LinkClient, count: number, found: Found): Promise<void> {
  let tries = 0; // Each in a session of its own: one that is tried again may have been opened.
  await repeat(count, found, (at) => oneTerminal(link, `t${at}-${tries++}`, ways[at % ways.length] ?? "exits"));
  await oneTerminal(link, "one-more", "exits");
}

async function oneTerminal(link: LinkClient, sessionId: string, way: (typeof ways)[number]): Promise<void> {
  using within = new Deadline(systemClock, 60_000);
  const { openSession, killSession } = SessionService.method;
  const script = {
    exits: "echo on; exit 5",
    "is killed": "echo on; exec sleep 100",
    "goes with its client": "echo on; exec sleep 100",
    "exits, and a child holds the terminal": "setsid sleep 2 & echo on; exit 5",
  }[way];
  const clientBound = way === "goes with its client";
  const request = { sessionId, kind: SessionKind.TERMINAL, command: "sh", args: ["-c", script], clientBound };
  await link.call(openSession, request, { within });
  const attached = await attach(link, sessionId, within);
  if (way === "is killed") await link.call(killSession, { sessionId }, { within });
  if (clientBound) {
    await attached.hasOutput;
    attached.stream.end({ clientClosed: true });
    await untilEnded(link, sessionId, within);
    return;
  }
  const end = await attached.end;
  const right = way === "is killed" ? "signal SIGKILL" : "code 5";
  if (end !== right) throw new Error(`session ${sessionId}, which ${way}, ended with ${end}`);
}

/** Waits for the agent's own word, output by output, never by the clock. */
async function untilEnded(link: LinkClient, sessionId: string, within: Deadline): Promise<void> {
  for (let fromOffset = 0n; ; ) {
    const request = { sessionId, fromOffset, waitMs: 5_000 };
    const { session, nextOffset } = await link.call(SessionService.method.readSession, request, { within });
    if (session?.exit !== undefined) return;
    fromOffset = nextOffset;
  }
}

async function attach(link: LinkClient, sessionId: string, within: Deadline) {
  let end = "no exit";
  const over = Promise.withResolvers<string>();
  over.promise.catch(() => undefined); // Whoever waits for it sees it.
  const output = Promise.withResolvers<void>();
  const stream = await link.open(
    SessionService.method.attachSession,
    { sessionId, mode: AttachMode.EXCLUSIVE },
    {
      message: (payload) => {
        const { event } = fromBinary(AttachSessionResponseSchema, payload);
        if (event.case === "exited") end = `${event.value.exit?.outcome.case} ${event.value.exit?.outcome.value}`;
      },
      data: () => output.resolve(),
      over: (error) => (error ? over.reject(error) : over.resolve(end)),
    },
    { within },
  );
  return { stream, end: over.promise, hasOutput: output.promise };
}

async function attaches(link: LinkClient, count: number, random: Random, found: Found): Promise<void> {
  using within = new Deadline(systemClock, 60_000);
  const script = ["-c", "while sleep 0.02; do echo tick; done"];
  const { openSession, killSession, attachSession } = SessionService.method;
  const { startExecution, followExecution, cancelExecution } = ExecutionService.method;
  const session = { sessionId: "ticking", kind: SessionKind.TERMINAL, command: "sh", args: script };
  await link.call(openSession, session, { within });
  const silent = { message: () => undefined, data: () => undefined, over: () => undefined };
  const command = { command: "sh", args: script };
  await link.open(startExecution, { executionId: "ticking", command, retainOutput: true }, silent, { within });
  await repeat(count, found, async (at) => {
    using each = new Deadline(systemClock, 30_000);
    const mode = random.chance(0.7) ? AttachMode.OBSERVE : AttachMode.EXCLUSIVE;
    const stream: CallerStream =
      at % 2 === 0
        ? await link.open(attachSession, { sessionId: "ticking", mode }, silent, { within: each })
        : await link.open(followExecution, { executionId: "ticking" }, silent, { within: each });
    const moment = random.whole(4);
    if (moment === 1) await new Promise((resolve) => setImmediate(resolve));
    if (moment > 1) await delay(random.whole(15));
    if (random.chance(0.5)) stream.end({ clientClosed: random.chance(0.5) });
    else stream.destroy(new Error("cancelled"));
  });
  using last = new Deadline(systemClock, 60_000);
  await link.call(killSession, { sessionId: "ticking" }, { within: last });
  await link.call(cancelExecution, { executionId: "ticking" }, { within: last });
}
