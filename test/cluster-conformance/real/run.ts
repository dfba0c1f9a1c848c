// npm run test:cluster: everything that a real cluster can show, on one that is built and started here.
//   -- --keep            starts it and keeps it until Ctrl-C
//   -- --record FILE     writes what the conformance suite saw
//   -- --build-minutes N a build that takes longer is ended, and the rest is skipped by name
import { once } from "node:events";
import { guestAgentImage } from "@holdfast/embedded-cluster";
import { pino } from "pino";
import { bundleGuestAgent } from "../../../services/guest-agent/bundle.ts";
import { readFlags, refuseFlags, wholeFlag } from "../../../tools/read-flags.ts";
import { whenToEnd } from "./ending.ts";
import { ensurePrograms, NoGoError, type ProgramFolder } from "./programs.ts";
import { startRealCluster } from "./real-cluster.ts";
import { runSteps, stepsOn } from "./steps.ts";

const wish = readFlags("test:cluster", {
  keep: { type: "boolean" },
  record: { type: "string" },
  "build-minutes": { type: "string", default: "240" },
});
if (wish.keep === true && wish.record !== undefined)
  refuseFlags("test:cluster", "--record would do nothing beside --keep, which runs no suite");
const buildMinutes = wholeFlag("test:cluster", "build-minutes", wish["build-minutes"], 1, 1440);

using ending = whenToEnd();
const programs = await haveBuilt();
if (programs !== undefined) process.exitCode = await runOn(programs);

/** Undefined, with the reason said, where there is nothing to run on. */
async function haveBuilt(): Promise<ProgramFolder | undefined> {
  const late = AbortSignal.timeout(buildMinutes * 60_000);
  try {
    return await ensurePrograms({ signal: AbortSignal.any([ending.signal, late]), say });
  } catch (error) {
    if (ending.signal.aborted) process.exitCode = 130;
    else if (error instanceof NoGoError) say(`skipped: ${error.message}`);
    else if (late.aborted) say(`skipped: the programs of a real cluster were not built within ${buildMinutes} min`);
    else throw error;
    return undefined;
  }
}

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
