import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { allCases } from "./cases/index.ts";
import { startEmbeddedTarget } from "./embedded-target.ts";
import { knownDifferences } from "./known-differences.ts";
import { readRecording } from "./recorded/recording.ts";
import { describeDifference, differences, isUnder } from "./suite/compare.ts";
import type { ConformanceCase } from "./suite/conformance-case.ts";
import { runCase } from "./suite/run-case.ts";
import { caseDeadlineMs, type Target } from "./target.ts";

const recording = readRecording();
const limitMs = caseDeadlineMs + 20_000;

describe("the embedded cluster is as the recorded one", () => {
  let target: Target;
  /** Known differences that were met. */
  const met = new Set<number>();

  beforeAll(async () => {
    target = await startEmbeddedTarget();
  }, 60_000);
  afterAll(async () => {
    await target[Symbol.asyncDispose]();
    // A difference that is no more is not kept on the list.
    expect(knownDifferences.filter((_, index) => !met.has(index))).toEqual([]);
  }, 60_000);

  const check = async (item: ConformanceCase): Promise<void> => {
    const outcome = await runCase(item, target.parts, target.stage);
    if (outcome.t === "skipped") throw new Error(`the embedded cluster lacks ${outcome.lacking.join(", ")}`);
    if (outcome.t === "failed") throw outcome.error;
    const found = differences(recording.cases[item.id] ?? [], outcome.transcript).filter((difference) => {
      const known = knownDifferences.findIndex((one) => one.case === item.id && isUnder(difference, one));
      if (known >= 0) met.add(known);
      return known < 0;
    });
    expect(found.map(describeDifference).join("\n")).toBe("");
  };

  // A compaction takes history away from whoever reads it: those cases run by themselves.
  const compacts = ({ needs = [] }: ConformanceCase): boolean => needs.includes("compaction");
  const named = (cases: readonly ConformanceCase[]) => cases.map((item) => [item.id, item.title, item] as const);
  it.concurrent.each(named(allCases.filter((item) => !compacts(item))))(
    "%s: %s",
    (_id, _title, item) => check(item),
    limitMs,
  );
  it.each(named(allCases.filter(compacts)))("%s: %s", (_id, _title, item) => check(item), limitMs);
});

describe("the recording", () => {
  it("is of every case, and of no other", () => {
    expect(Object.keys(recording.cases).sort()).toEqual(allCases.map(({ id }) => id).sort());
  });

  it("says of which versions it is", () => {
    expect(recording.header.kubernetes).toMatch(/^v\d+\.\d+\.\d+$/);
    expect(recording.header.sandboxController).toMatch(/^v?\d+\.\d+\.\d+$/);
  });
});

describe("the cases", () => {
  it("have ids of their own", () => {
    expect(new Set(allCases.map(({ id }) => id)).size).toBe(allCases.length);
  });
});
