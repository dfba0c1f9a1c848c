import type { Logger } from "pino";
import { startApiServer } from "./api-server/api-server.ts";
import { systemClock } from "./clock.ts";
import { FaultPlan } from "./faults/fault-plan.ts";
import type { Faults } from "./faults/faults.ts";
import { faultyApi } from "./faults/faulty-api.ts";
import { type AgentProgram, type Isolation, readContainerLog, startLocalNode } from "./local-node/index.ts";
import { startSandboxController } from "./sandbox-controller/sandbox-controller.ts";
import { seed } from "./seed.ts";

export interface EmbeddedClusterOptions {
  /** Holds objects, disks and the kubeconfig. Made 0700 if absent; locked while the cluster runs. */
  readonly dataDir: string;
  /** 0 or absent takes the port of the last run if it is free, else any. */
  readonly port?: number;
  /** What runs in a pod that names the agent's image. */
  readonly agent: AgentProgram;
  readonly log: Logger;
  /** Serves the fault knobs over HTTP, to whoever has the kubeconfig's token: never for anything but trying failures. */
  readonly allowFaults?: boolean;
}

/** A small Kubernetes in this process: API server, sandbox controller and one node. */
export interface EmbeddedCluster {
  readonly url: string;
  readonly kubeconfigPath: string;
  readonly namespace: "default";
  /** How its node keeps pods apart. */
  readonly isolation: Isolation;
  /** What it does less strictly than a real cluster: one sentence each, for people. */
  readonly relaxations: readonly string[];
  /** What can be made to go wrong. Nothing does until it is asked for. */
  readonly faults: Faults;
  /** Forgets the API's change log, as an operator's compaction does: older watches and pages answer 410. */
  compact(): void;
  /** Stops every pod and keeps objects and disks. */
  stop(): Promise<void>;
}

const oneUser = "The API server knows one user with one token, who may do everything; roles are not served.";

/**
 * Starts the cluster over a data directory. Throws DataDirInUseError when another process holds it; then, as after any
 * failure, nothing is left running.
 */
export async function startEmbeddedCluster(options: EmbeddedClusterOptions): Promise<EmbeddedCluster> {
  const { dataDir, agent, log } = options;
  const stops: (() => Promise<void>)[] = [];
  // In reverse: the API outlives those who write to it. One that fails to stop does not keep the rest running.
  const stopAll = async (): Promise<void> => {
    const failures: unknown[] = [];
    for (let stop = stops.pop(); stop !== undefined; stop = stops.pop()) {
      await stop().catch((error: unknown) => failures.push(error));
    }
    if (failures.length > 0) throw new AggregateError(failures, "The embedded cluster did not stop cleanly.");
  };
  try {
    const faults = new FaultPlan(systemClock, (error) =>
      log.error({ err: error }, "what a fault rule did is not mended"),
    );
    const server = await startApiServer({
      dataDir,
      port: options.port ?? 0,
      log: log.child({ part: "api-server" }),
      faults,
      readLog: (uid, container) => readContainerLog(dataDir, uid, container),
      servesFaults: options.allowFaults === true,
    });
    stops.push(() => server.stop());
    await seed(server.api, agent.image);
    const controller = await startSandboxController({
      api: faultyApi(server.api, faults, "controller"),
      log: log.child({ part: "sandbox-controller" }),
    });
    stops.push(() => controller.stop());
    const node = await startLocalNode({
      api: faultyApi(server.api, faults, "node"),
      dataDir,
      agent,
      log: log.child({ part: "local-node" }),
      storeOpenedAt: server.openedAt,
      faults: faults.node,
    });
    stops.push(() => node.stop());
    faults.node.useNode(node.faults);
    // First of all: what it holds would be waited for.
    stops.push(async () => faults.stop());

    let stopping: Promise<void> | undefined;
    return {
      url: server.url,
      kubeconfigPath: server.kubeconfigPath,
      namespace: "default",
      isolation: node.isolation,
      relaxations: [...node.relaxations, oneUser],
      faults,
      compact: server.compact,
      stop: () => {
        stopping ??= stopAll();
        return stopping;
      },
    };
  } catch (error) {
    await stopAll().catch((stopError: unknown) =>
      log.error({ err: stopError }, "stopping after a failed start failed"),
    );
    throw error;
  }
}
