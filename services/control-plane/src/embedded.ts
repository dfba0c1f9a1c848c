import { accessSync, constants } from "node:fs";
import { join } from "node:path";
import {
  DataDirInUseError,
  type EmbeddedCluster,
  guestAgentImage,
  startEmbeddedCluster,
} from "@holdfast/embedded-cluster";
import type { Logger } from "pino";
import type { ServiceConfig } from "./config/service-config.ts";
import { isStorageTrouble, prepareDataDirectory, unusable } from "./data-directory.ts";
import { partLogger } from "./logging.ts";
import { StartFailure } from "./start-failure.ts";

/** The file of the bundled agent that a pod runs. */
const agentEntry = "main.mjs";

/** Starts the embedded cluster over the data directory; throws a StartFailure when that cannot be used. */
export async function startEmbedded(config: ServiceConfig, logger: Logger): Promise<EmbeddedCluster> {
  const { dataDir, agentDir, allowFaults } = config;
  assertAgentBundled(agentDir);
  prepareDataDirectory(dataDir);
  try {
    return await startEmbeddedCluster({
      dataDir,
      agent: { image: guestAgentImage, nodePath: process.execPath, directory: agentDir, entry: agentEntry },
      log: partLogger(logger, "embedded-cluster"),
      allowFaults,
    });
  } catch (error) {
    if (error instanceof DataDirInUseError) throw new StartFailure(error.message, error);
    if (isStorageTrouble(error)) throw unusable(dataDir, error);
    throw error;
  }
}

/** What a guest with privileges means on this cluster, unless the operator says: refused only where pods are truly apart. */
export function probeVerdictOn(cluster: EmbeddedCluster): "refuse" | "report" {
  return cluster.isolation === "namespaces" ? "refuse" : "report";
}

function assertAgentBundled(agentDir: string): void {
  try {
    accessSync(join(agentDir, agentEntry), constants.R_OK);
  } catch (error) {
    throw new StartFailure(
      `there is no bundled guest agent in ${agentDir}: start by npm start, which bundles it, or give --agent-dir`,
      error,
    );
  }
}
