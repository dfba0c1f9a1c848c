import { fork } from "node:child_process";
import { readFlags, wholeFlag } from "../../tools/read-flags.ts";
import { missing, tables, tableText } from "./cells.ts";
import {
  classOf,
  type Failure,
  playSlice,
  type Slice,
  type SliceResult,
  sequenceOf,
  simplest,
  stepsOf,
} from "./slice.ts";
import { Tally } from "./tally.ts";
import { tracedSequence } from "./trace.ts";
import { verbs } from "./world/calls.ts";

/** `npm run interleavings -- --runs N --seed S`: generated sequences of calls, faults and foreign deeds, judged one by one. */
const values = readFlags("interleavings", {
  runs: { type: "string", default: "1000" },
  seed: { type: "string", default: String(Date.now() % 2 ** 20) },
  from: { type: "string", default: "0" },
  jobs: { type: "string", default: "1" },
  /** Goes on after failures, and tells their classes. */
  survey: { type: "boolean", default: false },
  /** Plays this one, and tells all that happened. */
  trace: { type: "string" },
  /** With --trace: the simplest that fails likewise. */
  simplest: { type: "boolean", default: false },
  slice: { type: "boolean", default: false },
  /** Stops at the first failure, and tells only that. */
  "first-only": { type: "boolean", default: false },
  /** The check itself is checked: it must fail without each guard of the product. */
  "without-guards": { type: "boolean", default: false },
  /** A few, with real agents in the pods of an embedded cluster, on the wall clock. */
  real: { type: "boolean", default: false },
  verbose: { type: "boolean", default: false },
});

const whole = (option: "runs" | "seed" | "from" | "jobs", least: number): number =>
  wholeFlag("interleavings", option, values[option], least);

/** A run of this length has met whatever can be met. */
const runsThatMeetAll = 10_000;
const seed = whole("seed", 0);
const from = whole("from", 0);
const runs = whole("runs", 1);
const jobsWanted = whole("jobs", 1);
const traced = values.trace === undefined ? undefined : wholeFlag("interleavings", "trace", values.trace, 0);
const { survey } = values;

const guard = process.env.HOLDFAST_WITHOUT_GUARD;
if (guard !== undefined && process.env.HOLDFAST_GUARD_TAKEN !== guard) {
  throw new Error(`the guard ${guard} is still in the product: its file was never loaded`);
}

if (values.real) await real();
else if (values["without-guards"]) await checkGuards();
else if (values["first-only"]) await first();
else if (traced !== undefined) await trace(traced);
else if (values.slice) await playForParent();
else await check();

async function checkGuards(): Promise<void> {
  const { allMissed } = await import("./without-guards.ts");
  const isGood = await allMissed(["--runs", String(runs), "--seed", String(seed), "--from", String(from)]);
  if (!isGood) process.exitCode = 1;
}

async function real(): Promise<void> {
  const { runReal } = await import("./real/real-run.ts");
  const tally = new Tally();
  const failures = await runReal(runs, seed, tally, values.verbose);
  console.log(tally.lists(["answer", "fault", "foreign", ...verbs.map((verb) => `verb ${verb}`)]));
  console.log(`${runs} sequences with real agents, seed ${seed}, ${failures.length} failed`);
  for (const { number, steps, violations } of failures) {
    console.log(`sequence ${number}:\n${steps.map((step) => `  ${JSON.stringify(step)},`).join("\n")}`);
    for (const { promise, what } of violations) console.log(`${promise}: ${what}`);
  }
  if (failures.length > 0) process.exitCode = 1;
}

async function first(): Promise<void> {
  const { played, failures } = await playSlice({ seed, from, runs, survey: false });
  const [failure] = failures;
  if (!failure) return console.log(`${played} sequences, none failed`);
  const [violation] = failure.violations;
  console.log(
    `broken: after ${played} sequences (seed ${seed}, ${failure.number}) ${violation?.promise}: ${violation?.what.slice(0, 200)}`,
  );
  process.exitCode = 1;
}

/** One of several processes that share a run. */
async function playForParent(): Promise<void> {
  const result = await playSlice({ seed, from, runs, survey }, (played) => {
    if (played % 100 === 0) process.send?.({ t: "played", played: 100 });
  });
  process.send?.({ t: "result", result });
  process.disconnect?.();
}

async function check(): Promise<void> {
  const began = performance.now();
  const seconds = (): number => Math.round((performance.now() - began) / 1_000);
  let told = 0;
  const onPlayed = (by: number): void => {
    told += by;
    if (told % 500 === 0) console.log(`${told} sequences, ${seconds()} s`);
  };
  const jobs = Math.min(jobsWanted, runs);
  const share = Math.ceil(runs / jobs);
  const slices = Array.from({ length: jobs }, (_, job): Slice => {
    const begin = job * share;
    return { seed, survey, from: from + begin, runs: Math.max(0, Math.min(share, runs - begin)) };
  });
  const results = await Promise.all(
    jobs === 1
      ? slices.map((slice) => playSlice(slice, () => onPlayed(1)))
      : slices.map((slice) => inProcess(slice, onPlayed)),
  );
  const tally = new Tally();
  for (const { counts } of results) tally.add(counts);
  const played = results.reduce((sum, result) => sum + result.played, 0);
  const failures = results.flatMap((result) => result.failures);
  console.log(tally.lists(["answer", "landed at the very end"]));
  for (const table of tables) console.log(`\n${tableText(table, tally)}`);
  const notMet = missing(tally);
  console.log(notMet.length === 0 ? "\nEvery cell was met." : `\nnot met:\n  ${notMet.join("\n  ")}`);
  console.log(`${played} sequences with seed ${seed} in ${seconds()} s, ${failures.length} failed`);
  tellClasses(failures);
  if (notMet.length > 0 && played >= runsThatMeetAll) process.exitCode = 1;
  const [first] = failures;
  if (!first) return;
  process.exitCode = 1;
  if (survey) return;
  console.log(`sequence ${first.number} of seed ${seed} fails; its simplest form:`);
  tellSequence(await simplest(seed, first.number));
}

function inProcess(slice: Slice, onPlayed: (by: number) => void): Promise<SliceResult> {
  return new Promise((resolve, reject) => {
    const options = ["runs", "from", "seed"] as const;
    const numbers = options.flatMap((option) => [`--${option}`, String(slice[option])]);
    const child = fork(import.meta.filename, ["--slice", ...numbers, ...(slice.survey ? ["--survey"] : [])]);
    type Told =
      | { readonly t: "played"; readonly played: number }
      | { readonly t: "result"; readonly result: SliceResult };
    child.on("message", (told: Told) => {
      if (told.t === "played") onPlayed(told.played);
      else resolve(told.result);
    });
    child.on("exit", (code) => reject(new Error(`a process of the check ended with ${code} before its result`)));
  });
}

function tellClasses(failures: readonly Failure[]): void {
  const classes = new Map<string, number[]>();
  for (const { number, violations } of failures) {
    for (const key of new Set(violations.map(classOf))) classes.set(key, [...(classes.get(key) ?? []), number]);
  }
  for (const [key, numbers] of [...classes].sort(([, a], [, b]) => b.length - a.length)) {
    console.log(`${numbers.length} (${numbers.slice(0, 4).join(", ")}) ${key}`);
  }
}

async function trace(number: number): Promise<void> {
  const sequence = values.simplest ? await simplest(seed, number) : sequenceOf(seed, number);
  tellSequence(sequence);
  for (const line of await tracedSequence(sequence)) console.log(line);
}

function tellSequence(sequence: ReturnType<typeof sequenceOf>): void {
  console.log(`${sequence.theme.name}, ${sequence.prologue}`);
  for (const step of stepsOf(sequence)) console.log(`  ${JSON.stringify(step)},`);
}
