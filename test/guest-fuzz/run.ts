import { readFlags, refuseFlags, wholeFlag } from "../../tools/read-flags.ts";
import { heldBy, watchedAgent } from "../guest-soak/watched-agent.ts";
import { runAgent } from "./agent-run.ts";
import { brokenAgent } from "./broken-agent.ts";
import { fuzz } from "./fuzz.ts";
import { guards } from "./guards.ts";

/** `npm run fuzz -- --seconds N [--seed S]`: a real agent process under frames, messages and orders of calls that nobody should send. */
const values = readFlags("fuzz", {
  seconds: { type: "string", default: "30" },
  seed: { type: "string", default: String(Date.now() % 2 ** 20) },
  connections: { type: "string", default: "12" },
  /** Takes this guard out of the agent first: the run must find it. */
  without: { type: "string" },
});

const seconds = wholeFlag("fuzz", "seconds", values.seconds, 1);
const seed = wholeFlag("fuzz", "seed", values.seed, 0);
const connections = wholeFlag("fuzz", "connections", values.connections, 1, 1_000);
if (values.without !== undefined && !guards.some(({ name }) => name === values.without)) {
  const names = guards.map(({ name }) => JSON.stringify(name)).join(", ");
  refuseFlags("fuzz", `--without ${JSON.stringify(values.without)} is no guard; there are ${names}`);
}
const isWhole = values.without === undefined;
await using agent = await (values.without === undefined ? watchedAgent() : runAgent(brokenAgent(values.without)));
const before = isWhole ? await heldBy(agent) : undefined;
const began = performance.now();
const { tally, violations, figures } = await fuzz(agent, {
  seconds,
  seed,
  connections,
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
