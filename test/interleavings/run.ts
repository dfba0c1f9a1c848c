import { parseArgs } from "node:util";
import fc from "fast-check";
import { runSequence } from "./sequence.ts";
import { type Step, sequences } from "./steps.ts";
import { Tally } from "./tally.ts";

/** `npm run interleavings -- --runs N --seed S`: generated sequences of calls, faults and foreign deeds, judged one by one. */
const { values } = parseArgs({
  options: { runs: { type: "string", default: "1000" }, seed: { type: "string" }, path: { type: "string" } },
});
const runs = Number(values.runs);
if (!Number.isInteger(runs) || runs < 1)
  throw new RangeError(`--runs must be a whole number above 0, not ${values.runs}`);
const seed = values.seed === undefined ? Date.now() % 2 ** 31 : Number(values.seed);
const tally = new Tally();
const began = performance.now();
let played = 0;

const result = await fc.check(
  fc.asyncProperty(sequences, async (sequence) => {
    const violations = await runSequence(sequence, tally);
    played += 1;
    if (played % 500 === 0) console.log(`${played} sequences, ${Math.round((performance.now() - began) / 1_000)} s`);
    if (violations.length > 0) throw new Error(violations.map(({ promise, what }) => `${promise}: ${what}`).join("\n"));
  }),
  { numRuns: runs, seed, ...(values.path === undefined ? {} : { path: values.path }) },
);

console.log(tally.table());
console.log(`${played} sequences with seed ${seed} in ${Math.round((performance.now() - began) / 1_000)} s`);
if (result.failed) {
  const [sequence] = result.counterexample ?? [];
  console.log(`failed: --seed ${result.seed} --path ${result.counterexamplePath}`);
  console.log(result.errorInstance instanceof Error ? result.errorInstance.message : result.errorInstance);
  const isIdle = (step: Step): boolean => step.t === "turns" && step.count === 0;
  console.log(`${sequence?.theme.name}, ${sequence?.prologue}`);
  for (const step of sequence?.steps ?? []) if (!isIdle(step)) console.log(`  ${JSON.stringify(step)},`);
  process.exitCode = 1;
}
