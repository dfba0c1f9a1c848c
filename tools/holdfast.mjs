#!/usr/bin/env node
// `npx holdfast` in this workspace: the command-line client, on a Node that is new enough. Plain JavaScript, as the launcher.
import { spawn } from "node:child_process";
import { constants } from "node:os";
import { join } from "node:path";
import { ensureInstalled, nodeForTasks, root } from "./install.mjs";

try {
  await ensureInstalled();
} catch (error) {
  console.error(`holdfast: ${error instanceof Error ? error.message : error}`);
  process.exit(1);
}
const main = join(root, "services/cli/src/main.ts");
const argv = ["--disable-warning=ExperimentalWarning", main, ...process.argv.slice(2)];
const child = spawn(nodeForTasks(), argv, { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`holdfast: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => process.exit(code ?? 128 + constants.signals[signal ?? "SIGTERM"]));
