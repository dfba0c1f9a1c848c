import { readFlags, wholeFlag } from "../../tools/read-flags.ts";
import { Random } from "../guest-fuzz/random.ts";
import { soak } from "./soak.ts";
import { pidsBound, watchedAgent } from "./watched-agent.ts";

/** `npm run soak`: thousands of commands, terminals and attaches on one agent process, and what it holds after each part. */
const values = readFlags("soak", {
  commands: { type: "string", default: "3000" },
  terminals: { type: "string", default: "1000" },
  attaches: { type: "string", default: "10000" },
  seed: { type: "string", default: "1" },
});

const whole = (option: keyof typeof values): number => wholeFlag("soak", option, values[option], 0);
const sizes = { commands: whole("commands"), terminals: whole("terminals"), attaches: whole("attaches") };
const seed = whole("seed");
const { options, told } = pidsBound();
console.log(`processes and threads: ${told}`);
await using agent = await watchedAgent(options);
for (const { name, seconds, before, after, redialled, wrong } of await soak(agent, sizes, new Random(seed))) {
  console.log(`${name}, ${seconds} s, ${redialled} dialled again`);
  console.log(`  before ${JSON.stringify(before)}`);
  console.log(`  after  ${JSON.stringify(after)}`);
  for (const one of wrong) console.log(`  WRONG ${one}`);
  if (wrong.length > 0) process.exitCode = 1;
}
