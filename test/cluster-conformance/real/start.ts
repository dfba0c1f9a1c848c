// Starts a real cluster and keeps it until SIGINT or SIGTERM. Its last line names the kubeconfig.
import { guestAgentImage } from "@holdfast/embedded-cluster";
import { pino } from "pino";
import { bundleGuestAgent } from "../../../services/guest-agent/bundle.ts";
import { ensurePrograms } from "./programs.ts";
import { startRealCluster } from "./real-cluster.ts";

const log = pino({ level: process.env.HOLDFAST_LOG_LEVEL ?? "warn" }, pino.destination(2));
const programs = await ensurePrograms(console.log);
const { directory } = await bundleGuestAgent();
const agent = { image: guestAgentImage, nodePath: process.execPath, directory, entry: "main.mjs" };
const began = performance.now();
await using cluster = await startRealCluster({ programs, agent, log });
const { kubernetes, agentSandbox } = programs.versions;
console.log(
  `kubernetes ${kubernetes}, agent-sandbox ${agentSandbox}: up in ${((performance.now() - began) / 1000).toFixed(1)} s`,
);
for (const part of cluster.missing) console.log(`missing: ${part}`);
for (const flag of cluster.flags) console.log(`started: ${flag}`);
console.log(`etcd: ${cluster.etcdUrl}`);
console.log(`logs: ${cluster.folder}`);
console.log(`kubeconfig: ${cluster.kubeconfigPath}`);
const asked = new Promise<void>((resolve) => {
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resolve());
});
await Promise.race([asked, cluster.failed]);
