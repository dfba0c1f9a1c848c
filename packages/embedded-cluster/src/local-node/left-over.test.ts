import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, it, onTestFinished } from "vitest";
import { endLeftOver, parseLeftOver } from "./left-over.ts";
import { identifyProcess } from "./process-identity.ts";
import { quiet } from "./testing/cluster.ts";

it("what an earlier life left is over when it is a zombie that nobody takes", async () => {
  // `sleep` takes no children: the one that it inherits from the shell stays a zombie for as long as it runs.
  const parent = spawn("sh", ["-c", "sleep 0.1 & echo $!; exec sleep 1000"], { stdio: ["ignore", "pipe", "ignore"] });
  onTestFinished(() => void parent.kill("SIGKILL"));
  const [line] = await once(parent.stdout, "data");
  const identity = await identifyProcess(Number(line));
  const left = parseLeftOver(JSON.stringify({ ...identity, isGroup: false }));
  if (left === undefined) throw new Error("no identity");
  const how = { patienceMs: 60_000, signal: new AbortController().signal, log: quiet };
  expect(await endLeftOver(left, "uid", how)).toBe(true);
}, 5_000);
