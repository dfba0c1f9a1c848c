import { parseArgs } from "node:util";
import { runAgent } from "./agent-run.ts";
import { brokenAgent } from "./broken-agent.ts";
import { fuzz } from "./fuzz.ts";

/** `npm run fuzz -- --seconds N [--seed S]`: a real agent process under frames, messages and orders of calls that nobody should send. */
const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "30" },
    seed: { type: "string", default: String(Date.now() % 2 ** 20) },
    connections: { type: "string", default: "12" },
    /** Takes this guard out of the agent first: the run must find it. */
    without: { type: "string" },
  },
});

function whole(option: "seconds" | "seed" | "connections"): number {
  const value = Number(values[option]);
  if (Number.isInteger(value) && value >= 0) return value;
  throw new RangeError(`--${option} must be a whole number, not ${values[option]}`);
}

const seed = whole("seed");
await using agent = await runAgent(values.without === undefined ? {} : brokenAgent(values.without));
const began = performance.now();
const { tally, violations, figures } = await fuzz(agent, {
  seconds: whole("seconds"),
  seed,
  connections: whole("connections"),
});
for (const line of tally.lines()) console.log(line);
for (const [name, value] of Object.entries(figures)) console.log(`${name}: ${value}`);
console.log(`seed ${seed}, ${Math.round((performance.now() - began) / 1_000)} s, ${violations.length} violations`);
for (const violation of violations) console.log(`VIOLATION ${violation}`);
if (violations.length > 0) process.exitCode = 1;
