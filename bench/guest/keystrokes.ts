import type { LinkClient } from "../../packages/guest-link/src/index.ts";
import type { AgentRun } from "../../test/guest-fuzz/agent-run.ts";
import { type Row, spreadOf } from "../row.ts";
import { beside } from "./beside.ts";
import type { Raw } from "./raw.ts";
import { type Echo, startEcho } from "./terminal.ts";

const rounds = 6;
const keysEach = 150;
/** Between two keys: without it a wait of the loop meets one key and spares all that would have been typed meanwhile. */
const keyEveryMs = 4;
const startsPerSecond = 50;

class Samples {
  readonly ours: number[] = [];
  readonly raw: number[] = [];

  async take(echo: Echo, raw: Raw): Promise<void> {
    for (let at = 0; at < keysEach; at += 1) {
      this.ours.push(await echo.key());
      this.raw.push(await raw.echo());
      await new Promise((resolve) => setTimeout(resolve, keyEveryMs));
    }
  }
}

/** A terminal's echo at rest, beside commands of the same agent, and beside as many programs of another process: in turn. */
export async function keystrokes(agent: AgentRun, link: LinkClient, raw: Raw): Promise<readonly Row[]> {
  const echo = await startEcho(link);
  const [quiet, commands, strangers] = [new Samples(), new Samples(), new Samples()];
  for (let round = 0; round < rounds; round += 1) {
    await quiet.take(echo, raw);
    await beside({ perSecond: startsPerSecond, agent }, () => commands.take(echo, raw));
    await beside({ perSecond: startsPerSecond, agent: undefined }, () => strangers.take(echo, raw));
  }
  const work = "a keystroke's echo";
  const besideCommands = `${work} beside ${startsPerSecond} commands/s`;
  const besideStrangers = `beside ${startsPerSecond} programs/s of another process`;
  return [
    ...rowsOf(work, quiet.ours, "a raw TCP echo (one hop)", quiet.raw, "≤ 5, and < 5 ms"),
    ...rowsOf(besideCommands, commands.ours, "a raw TCP echo (one hop)", commands.raw, "≤ 5, and < 5 ms"),
    ...rowsOf(besideCommands, commands.ours, besideStrangers, strangers.ours, "1"),
  ];
}

function rowsOf(work: string, ours: readonly number[], against: string, theirs: readonly number[], target: string) {
  const [a, b] = [spreadOf(ours), spreadOf(theirs)];
  return [
    { work: `${work}, p50`, unit: "ms", ours: a.p50, against, theirs: b.p50, target: "-" },
    { work: `${work}, p99`, unit: "ms", ours: a.p99, against, theirs: b.p99, target },
  ];
}
