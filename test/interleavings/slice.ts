import fc from "fast-check";
import type { Violation } from "./judge/violation.ts";
import { runSequence } from "./sequence.ts";
import { type Sequence, type Step, sequences } from "./steps.ts";
import { type Counts, Tally } from "./tally.ts";

/** Some of the sequences of a seed. Each is its seed's and number's alone, so that any can be played again by itself. */
export interface Slice {
  readonly seed: number;
  readonly from: number;
  readonly runs: number;
  /** Goes on after a sequence that fails. */
  readonly survey: boolean;
}

export interface Failure {
  readonly number: number;
  readonly violations: readonly Violation[];
}

export interface SliceResult {
  readonly played: number;
  readonly counts: Counts;
  readonly failures: readonly Failure[];
}

const parameters = (seed: number, number: number): fc.Parameters<unknown> => ({
  seed: (seed * 1_000_003 + number) | 0,
  numRuns: 1,
  unbiased: true,
});

export function sequenceOf(seed: number, number: number): Sequence {
  const [sequence] = fc.sample(sequences, parameters(seed, number) as fc.Parameters<Sequence>);
  if (!sequence) throw new Error("nothing was generated");
  return sequence;
}

/** Plays a slice, and stops at its first failure but in a survey. */
export async function playSlice(
  slice: Slice,
  onPlayed: (played: number) => void = () => undefined,
): Promise<SliceResult> {
  const tally = new Tally();
  const failures: Failure[] = [];
  let played = 0;
  while (played < slice.runs) {
    const number = slice.from + played;
    const violations = await playOne(sequenceOf(slice.seed, number), tally);
    played += 1;
    onPlayed(played);
    if (violations.length === 0) continue;
    failures.push({ number, violations });
    if (!slice.survey) break;
  }
  return { played, counts: tally.counts(), failures };
}

/** One that the harness itself cannot play is a failure like any other. */
export async function playOne(sequence: Sequence, tally: Tally): Promise<readonly Violation[]> {
  try {
    return await runSequence(sequence, tally);
  } catch (error) {
    const what = error instanceof Error ? (error.stack ?? error.message) : String(error);
    return [{ promise: "the check itself can be played", what }];
  }
}

/** The simplest sequence that fails as this one does. */
export async function simplest(seed: number, number: number): Promise<Sequence> {
  const property = fc.asyncProperty(sequences, async (sequence) => {
    const violations = await playOne(sequence, new Tally());
    if (violations.length > 0) throw new Error("it fails");
  });
  const result = await fc.check(property, parameters(seed, number) as fc.Parameters<[Sequence]>);
  return result.counterexample?.[0] ?? sequenceOf(seed, number);
}

/** Without the steps that do nothing. */
export function stepsOf({ steps }: Sequence): readonly Step[] {
  return steps.filter((step) => !(step.t === "turns" && step.count === 0));
}

/** What kind of failure it is: the same for calls, numbers and places that differ. */
export function classOf({ promise, what }: Violation): string {
  const same = what
    .replace(/caller \d/g, "caller #")
    .replace(/epoch (\d+|none)/g, "epoch #")
    .replace(/mark-\d+/g, "mark")
    .replace(/\d+/g, "#");
  return `${promise} :: ${same}`.slice(0, 300);
}
