import { enableCompileCache } from "node:module";
import { join } from "node:path";
import { serviceVersion } from "./config/arguments.ts";
import { readConfig } from "./config/read-config.ts";
import type { ServiceConfig } from "./config/service-config.ts";
import { LifeOfProcess } from "./life-of-process.ts";
import { openLog, type ServiceLog } from "./logging.ts";
import { StartFailure } from "./start-failure.ts";

/** Where the launcher puts the bundled guest agent. */
const agentDirDefault = join(import.meta.dirname, "../../guest-agent/dist");

// What is imported below is compiled once per machine, not once per start: a third of the start is that.
enableCompileCache();

/** Reads the command line and becomes what it asks for. (docs/operations.md) */
async function main(): Promise<void> {
  const asked = readConfig(process.argv.slice(2), process.env, agentDirDefault);
  if (asked.t === "print") {
    process.stdout.write(asked.text);
    return;
  }
  const log = openLog(asked.config.logLevel);
  const life = new LifeOfProcess(log);
  await life.run(() => (asked.config.mode === "serve" ? serve(asked.config, log) : runCluster(asked.config, log)));
}

async function serve(config: ServiceConfig, { logger }: ServiceLog): Promise<() => Promise<void>> {
  const { startControlPlane } = await import("./control-plane.ts");
  const { serviceAnnouncement } = await import("./announcement.ts");
  const service = await startControlPlane(config, logger);
  process.stdout.write(serviceAnnouncement(service, config, serviceVersion));
  return () => service.stop();
}

async function runCluster(config: ServiceConfig, { logger }: ServiceLog): Promise<() => Promise<void>> {
  const { startEmbedded } = await import("./embedded.ts");
  const { clusterAnnouncement } = await import("./announcement.ts");
  const cluster = await startEmbedded(config, logger);
  process.stdout.write(clusterAnnouncement(cluster, config, serviceVersion));
  return () => cluster.stop();
}

try {
  await main();
} catch (error) {
  if (!(error instanceof StartFailure)) throw error;
  process.stderr.write(`holdfast: ${error.message.replaceAll(/\s+/g, " ").trim()}\n`, () => process.exit(2));
}
