import { dirname, join } from "node:path";
import { AgentService } from "@holdfast/api/holdfast/guest/v1/agent_pb";
import { systemClock } from "@holdfast/async";
import { type GuestFeature, leftoversNamedMax, linkProtocolVersion } from "@holdfast/contract";
import { LinkServer, Router } from "@holdfast/guest-link";
import { type AgentConfig, stateDirectoryOf } from "./config.ts";
import { baseEnvironment } from "./execution/command-environment.ts";
import { routeExecutions } from "./execution/execution-routes.ts";
import { ExecutionTable } from "./execution/execution-table.ts";
import { OutputPipes } from "./execution/output-pipes.ts";
import { routeFence } from "./fence/fence-routes.ts";
import { admissionBy } from "./fence/judged-methods.ts";
import { openFence } from "./fence/open-fence.ts";
import { routeFiles } from "./file/file-routes.ts";
import { loadLibc } from "./file/libc.ts";
import { Staging } from "./file/staging.ts";
import { WorkspaceTree } from "./file/workspace-tree.ts";
import { readOwnStatus } from "./probe.ts";
import { serveReadiness } from "./ready-server.ts";

/** A running agent. */
export interface Agent {
  readonly port: number;
  /** Admits nothing new, ends what runs, lets its readers have the ends, then closes. */
  stop(graceMs: number): Promise<void>;
}

/** Between the last command's end and the closing of connections: what was sent has left by then. */
const farewellMs = 250;

/** What this agent serves; each name is announced only with the methods behind it. */
export const servedFeatures: readonly GuestFeature[] = ["executions", "files", "holder-epoch", "probe"];

/** Starts to serve. Resolves once it can be asked; rejects when its address or readiness socket cannot be had. */
export async function startAgent(config: AgentConfig, env: NodeJS.ProcessEnv): Promise<Agent> {
  const stateDirectory = stateDirectoryOf(config);
  const fence = await openFence(stateDirectory); // Before the port opens: a guest that has forgotten its holder must not serve.
  const environment = baseEnvironment(env, config.workspaceRoot);
  const pipes = new OutputPipes(join(dirname(config.readySocket), "pipes"));
  const table = new ExecutionTable({ workspaceRoot: config.workspaceRoot, environment, clock: systemClock, pipes });
  const router = new Router(admissionBy(fence));
  routeFence(router, fence);
  routeExecutions(router, table, fence, config.bootId);
  const tree = await WorkspaceTree.open(config.workspaceRoot);
  const staging = new Staging(tree, config.workspaceRoot);
  await staging.clear(); // Before the port opens: what stands there then is a former agent's.
  routeFiles(router, { tree, staging, libc: loadLibc(), fence });
  router
    .unary(AgentService.method.health, async () => ({
      serving: !table.isStopping,
      protocolVersion: linkProtocolVersion,
      features: [...servedFeatures],
      bootId: config.bootId,
      runningExecutions: table.running.length,
      holderEpoch: fence.epoch,
      unconfirmedExecutions: table.unconfirmed.slice(0, leftoversNamedMax).map(({ wish }) => wish.id),
    }))
    .unary(AgentService.method.probe, async () => ({ processStatus: await readOwnStatus(environment) }));

  const link = new LinkServer(
    { token: config.token, bootId: config.bootId, features: servedFeatures },
    router,
    systemClock,
  );
  const port = await link.listen(config.host, config.port);
  const readiness = await serveReadiness(config.readySocket, () => !table.isStopping);
  pipes.prepare();
  return {
    port,
    async stop(graceMs) {
      await table.stop(graceMs);
      await new Promise((resolve) => setTimeout(resolve, farewellMs));
      link.close();
      readiness.close();
      tree[Symbol.dispose]();
    },
  };
}
