import { parseArgs } from "node:util";
import { Random } from "../guest-fuzz/random.ts";
import { soak } from "./soak.ts";
import { pidsBound, watchedAgent } from "./watched-agent.ts";

/** `npm run soak`: thousands of commands, terminals and attaches on one agent process, and what it holds after each part. */
const { values } = parseArgs({
  options: {
    commands: { type: "string", default: "3000" },
    terminals: { type: "string", default: "1000" },
    attaches: { type: "string", default: "10000" },
    seed: { type: "string", default: "1" },
  },
});

function whole(option: keyof typeof values): number {
  const value = Number(values[option]);
  if (Number.isInteger(value) && value >= 0) return value;
  throw new RangeError(`--${option} must be a whole number, not ${values[option]}`);
}

const { options, told } = pidsBound();
console.log(`processes and threads: ${told}`);
await using agent = await watchedAgent(options);
const sizes = { commands: whole("commands"), terminals: whole("terminals"), attaches: whole("attaches") };
for (const { name, seconds, before, after, redialled, wrong } of await soak(agent, sizes, new Random(whole("seed")))) {
  console.log(`${name}, ${seconds} s, ${redialled} dialled again`);
  console.log(`  before ${JSON.stringify(before)}`);
  console.log(`  after  ${JSON.stringify(after)}`);
  for (const one of wrong) console.log(`  WRONG ${one}`);
  if (wrong.length > 0) process.exitCode = 1;
}
