import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { guards } from "./guards.ts";
import { runReal } from "./real/real-run.ts";
import { playOne, playSlice } from "./slice.ts";
import { type Prologue, type Step, themes } from "./steps.ts";
import { Tally } from "./tally.ts";
import { runWithout } from "./without-guards.ts";

interface Kept {
  readonly name: string;
  readonly theme: string;
  readonly prologue: Prologue;
  readonly steps: readonly Step[];
}

const kept = JSON.parse(readFileSync(join(import.meta.dirname, "kept.json"), "utf8")) as readonly Kept[];

describe("generated sequences", () => {
  it("break no promise, whatever meets whatever", { timeout: 300_000 }, async () => {
    const { failures, counts } = await playSlice({ seed: 20, from: 0, runs: 150, survey: false });
    expect(failures).toEqual([]);
    expect(counts.answer?.ok).toBeGreaterThan(500);
  });

  it.each(kept)("that failed once hold: $name", async ({ theme: name, prologue, steps }) => {
    const theme = themes.find((one) => one.name === name) ?? expect.unreachable();
    expect(await playOne({ theme, prologue, steps }, new Tally())).toEqual([]);
  });
});

describe("generated sequences with real agents", () => {
  it("break no promise either", { timeout: 300_000 }, async () => {
    const tally = new Tally();
    expect(await runReal(4, 3, tally, false)).toEqual([]);
    expect(tally.of("answer").get("ok")).toBeGreaterThan(5);
  });
});

describe("the check misses a guard that is taken out of the product", () => {
  // Those that it misses soonest. `npm run interleavings -- --without-guards` takes out each.
  it.each(["uid", "gate", "order of L17"])("%s", { timeout: 300_000 }, async (name) => {
    const guard = guards.find((one) => one.name === name) ?? expect.unreachable();
    expect(await runWithout(guard, ["--runs", "100", "--seed", "11"])).toMatchObject({ missed: true });
  });
});
