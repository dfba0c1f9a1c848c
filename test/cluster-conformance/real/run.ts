// npm run test:cluster: everything that a real cluster can show, on one that is built and started here.
//   -- --keep            starts it and keeps it until Ctrl-C
//   -- --record FILE     writes what the conformance suite saw
import { once } from "node:events";
import { guestAgentImage } from "@holdfast/embedded-cluster";
import { pino } from "pino";
import { bundleGuestAgent } from "../../../services/guest-agent/bundle.ts";
import { readFlags, refuseFlags } from "../../../tools/read-flags.ts";
import { whenToEnd } from "./ending.ts";
import { ensurePrograms, NoGoError, type ProgramFolder } from "./programs.ts";
import { startRealCluster } from "./real-cluster.ts";
import { runSteps, stepsOn } from "./steps.ts";

const wish = readFlags("test:cluster", { keep: { type: "boolean" }, record: { type: "string" } });
if (wish.keep === true && wish.record !== undefined)
  refuseFlags("test:cluster", "--record would do nothing beside --keep, which runs no suite");

using ending = whenToEnd();
const programs = await ensurePrograms(say).catch((error: unknown) => {
  if (!(error instanceof NoGoError)) throw error;
  say(`skipped: ${error.message}`);
  return undefined;
});
if (programs !== undefined) process.exitCode = await runOn(programs);

async function runOn({ versions, ...folder }: ProgramFolder): Promise<number> {
  const log = pino({ level: process.env.HOLDFAST_LOG_LEVEL ?? "warn" }, pino.destination(2));
  const { directory } = await bundleGuestAgent();
  const agent = { image: guestAgentImage, nodePath: process.execPath, directory, entry: "main.mjs" };
  const began = performance.now();
  await using cluster = await startRealCluster({ programs: { versions, ...folder }, agent, log });
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  say(
    `kubernetes ${versions.kubernetes}, agent-sandbox ${versions.agentSandbox}, etcd ${versions.etcd}: up in ${seconds} s`,
  );
  for (const part of cluster.missing) say(`missing, so what needs it is skipped: ${part}`);
  if (wish.keep !== true) {
    // Awaited here, for the cluster goes when this function ends.
    return await Promise.race([runSteps(stepsOn(cluster, versions, wish.record), ending.signal, say), cluster.failed]);
  }
  for (const flags of cluster.flags) say(flags);
  say(`etcd: ${cluster.etcdUrl}`);
  say(`logs: ${cluster.folder}`);
  say(`kubeconfig: ${cluster.kubeconfigPath}`);
  if (!ending.signal.aborted) await Promise.race([once(ending.signal, "abort"), cluster.failed]);
  return 0;
}

function say(line: string): void {
  console.log(`test:cluster: ${line}`);
}
