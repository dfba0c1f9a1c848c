import { parseArgs } from "node:util";
import { heldBy, watchedAgent } from "../guest-soak/watched-agent.ts";
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
const isWhole = values.without === undefined;
await using agent = await (values.without === undefined ? watchedAgent() : runAgent(brokenAgent(values.without)));
const before = isWhole ? await heldBy(agent) : undefined;
const began = performance.now();
const { tally, violations, figures } = await fuzz(agent, {
  seconds: whole("seconds"),
  seed,
  connections: whole("connections"),
});
for (const line of tally.lines()) console.log(line);
for (const [name, value] of Object.entries(figures)) console.log(`${name}: ${value}`);
if (before !== undefined && !agent.hasEnded()) {
  console.log(`held before: ${JSON.stringify(before)}`);
  console.log(`held after:  ${JSON.stringify(await heldBy(agent))}`);
}
console.log(`seed ${seed}, ${Math.round((performance.now() - began) / 1_000)} s, ${violations.length} violations`);
for (const violation of violations) console.log(`VIOLATION ${violation}`);
if (violations.length > 0) process.exitCode = 1;
