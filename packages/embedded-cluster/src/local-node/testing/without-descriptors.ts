// Runs a container and a probe in a process that has no file descriptor left, and prints what came of them.
import { openSync } from "node:fs";
import { PassThrough } from "node:stream";
import { ContainerProcess } from "../container-process.ts";
import { runCommand } from "../probe-attempt.ts";

const call = { file: "/bin/true", args: [], env: {} };
process.stdout.write("");
try {
  for (;;) openSync("/dev/null", "r");
} catch {
  const output = new PassThrough();
  const run = new ContainerProcess({ ...call, endSurvivors: undefined, output, beforeStart: async () => undefined });
  const probed = await runCommand(call, new AbortController().signal);
  console.log(JSON.stringify({ exit: await run.ended, probed }));
  process.exit(0);
}
