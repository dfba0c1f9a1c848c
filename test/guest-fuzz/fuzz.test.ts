import { describe, expect, it } from "vitest";
import { runAgent } from "./agent-run.ts";
import { brokenAgent } from "./broken-agent.ts";
import { fuzz } from "./fuzz.ts";
import { guards } from "./guards.ts";

describe("G1 G2 G3 the guest agent under what nobody should send", () => {
  it("lives, answers, serves a client beside it right, and holds no more afterwards; every method and type of frame was sent", async () => {
    await using agent = await runAgent();
    const { tally, violations, figures } = await fuzz(agent, { seconds: 8, seed: 20_261_130, leastCases: 500 });
    expect(violations).toEqual([]);
    expect(tally.missing).toEqual([]);
    expect(tally.toldForced).toBeGreaterThan(0);
    expect(tally.reachingShare).toBeGreaterThan(0.8);
    expect(Math.min(Number(figures["beside: commands"]), Number(figures["beside: files"]))).toBeGreaterThan(0);
    expect(figures["beside: tunnels"]).toBeGreaterThan(0);
  });

  it.each(guards.map(({ name }) => name))("is found out without a guard: %s", async (name) => {
    await using agent = await runAgent(brokenAgent(name));
    const options = { seconds: 20, seed: 3, answerWithinMs: 3_000, stopsAtFirst: true };
    const { violations } = await fuzz(agent, options);
    expect(violations).not.toEqual([]);
  });
});
