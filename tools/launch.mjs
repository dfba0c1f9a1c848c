#!/usr/bin/env node
// The one door: installs what is missing, picks a Node that is new enough, runs the task. Plain JavaScript, since the machine's own
// Node may be 20. (docs/decisions/0002-node-24-from-the-registry.md)
import { existsSync } from "node:fs";
import { join } from "node:path";
import { ensureInstalled, nodeForTasks, root } from "./install.mjs";
import { runStep } from "./run-step.mjs";
import { tasks } from "./tasks.mjs";

const [name, ...args] = process.argv.slice(2);
const task = tasks[name ?? ""];
if (!task) {
  console.error(`holdfast: no task "${name ?? ""}"; there are: ${Object.keys(tasks).join(", ")}`);
  process.exit(2);
}

if (task.length === 0 && args.length > 0) {
  console.error(`npm run ${name}: it takes no arguments, and was given ${args.join(" ")}; nothing was started`);
  process.exit(2);
}

try {
  await ensureInstalled();
} catch (error) {
  console.error(`holdfast: ${error instanceof Error ? error.message : error}`);
  process.exit(1);
}

const node = nodeForTasks();
const env = { ...process.env, PATH: `${join(node, "..")}:${join(root, "node_modules", ".bin")}:${process.env.PATH}` };
for (const step of task(args)) {
  const code = await run(step);
  if (code !== 0) process.exit(code);
}

/** Runs one step and resolves with its exit code. */
function run({ program, argv, quiet, tellsVerdict }) {
  const file = program === "node" ? node : join(root, "node_modules", ".bin", program);
  if (!existsSync(file)) {
    console.error(`holdfast: ${file} is missing; remove node_modules and try again`);
    return Promise.resolve(1);
  }
  return runStep({ file, argv, env, cwd: process.env.INIT_CWD ?? root, quiet, tellsVerdict });
}
