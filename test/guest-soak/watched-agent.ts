import { join } from "node:path";
import { type AgentRun, type AgentRunOptions, holdsWithin, runAgent } from "../guest-fuzz/agent-run.ts";

/** What an agent holds at a moment. */
export interface Held {
  readonly descriptors: number;
  readonly timers: number;
  /** Of JavaScript and what it holds outside, after a collection. */
  readonly heapMib: number;
  readonly rssMib: number;
  readonly zombies: number;
  readonly programs: number;
}

/** A uid that nobody else runs under, so that a limit on its processes is this agent's alone. */
const soakUid = 100_000 + (process.pid % 50_000);
export const pidsLimit = 256;

/** How many processes and threads the agent and all that it starts may have, and why not fewer. */
export function pidsBound(): { readonly options: AgentRunOptions; readonly told: string } {
  if (process.getuid?.() !== 0) {
    return { options: {}, told: "not bounded: a uid of its own needs root" };
  }
  const around = ["prlimit", `--nproc=${pidsLimit}:${pidsLimit}`, "--"];
  return { options: { uid: soakUid, around }, told: `RLIMIT_NPROC ${pidsLimit} for a uid of its own` };
}

/** An agent that can be asked what it holds. */
export function watchedAgent(options: AgentRunOptions = {}): Promise<AgentRun> {
  const nodeArgs = [
    "--expose-gc",
    "--disable-warning=ExperimentalWarning",
    "--import",
    join(import.meta.dirname, "report-resources.ts"),
  ];
  return runAgent({ ...options, nodeArgs });
}

export async function heldBy(agent: AgentRun): Promise<Held> {
  const reports = (): readonly string[] => agent.log().match(/^resources: .*$/gm) ?? [];
  const last = reports().at(-1);
  const before = reports().length;
  process.kill(agent.pid, "SIGUSR2");
  // The log keeps its last part only, so a new line may replace an old one.
  const came = await holdsWithin(20_000, () => reports().length > before || reports().at(-1) !== last);
  if (!came) throw new Error("the agent did not say what it holds");
  const { counts, heapBytes } = JSON.parse((reports().at(-1) ?? "").slice("resources: ".length)) as {
    readonly counts: Readonly<Record<string, number>>;
    readonly heapBytes: number;
  };
  const programs = agent.programs();
  return {
    descriptors: agent.descriptors(),
    timers: counts.Timeout ?? 0,
    heapMib: Math.round(heapBytes / 1024 / 1024),
    rssMib: Math.round(agent.rssBytes() / 1024 / 1024),
    zombies: programs.filter(({ state }) => state === "Z").length,
    programs: programs.length,
  };
}
