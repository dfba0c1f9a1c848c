/**
 * An embedded cluster in a process of its own, with the real agent, that tells what it holds. Over IPC: "measure" is
 * answered by a Measure, "stop" by the process's end.
 *
 *   node --expose-gc cluster-host.ts DATA_DIR AGENT_DIR ENTRY
 */
import { guestAgentImage, startEmbeddedCluster } from "@holdfast/embedded-cluster";
import { pino } from "pino";

/** What the process holds when nothing more can be collected. */
export interface Measure {
  /** Of every kind of handle that keeps the process awake, how many. */
  readonly handles: Readonly<Record<string, number>>;
  readonly heapMiB: number;
  readonly rssMiB: number;
}

const [dataDir = "", directory = "", entry = ""] = process.argv.slice(2);
const cluster = await startEmbeddedCluster({
  dataDir,
  agent: { image: guestAgentImage, nodePath: process.execPath, directory, entry },
  log: pino({ level: process.env.HOLDFAST_LOG_LEVEL ?? "silent" }),
});

process.on("message", async (message) => {
  if (message === "measure") process.send?.(measure());
  if (message !== "stop") return;
  await cluster.stop();
  process.disconnect();
});
process.send?.({ kubeconfigPath: cluster.kubeconfigPath, isolation: cluster.isolation });

function measure(): Measure {
  globalThis.gc?.();
  const handles: Record<string, number> = {};
  for (const kind of process.getActiveResourcesInfo()) handles[kind] = (handles[kind] ?? 0) + 1;
  const { heapUsed, rss } = process.memoryUsage();
  return { handles, heapMiB: heapUsed / 2 ** 20, rssMiB: rss / 2 ** 20 };
}
