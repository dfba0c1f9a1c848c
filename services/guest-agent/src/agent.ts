import { realpath } from "node:fs/promises";
import { resolve } from "node:path";
import { AgentService } from "@holdfast/api/holdfast/guest/v1/agent_pb";
import { systemClock } from "@holdfast/async";
import { type GuestFeature, leftoversNamedMax, linkProtocolVersion } from "@holdfast/contract";
import { LinkServer, Router } from "@holdfast/guest-link";
import { type AgentConfig, stateDirectoryOf } from "./config.ts";
import { routeDisk } from "./disk/disk-routes.ts";
import { Flush, fileSystemOf } from "./disk/flush.ts";
import { processScopeOf } from "./disk/process-scope.ts";
import { Quiesce } from "./disk/quiesce.ts";
import { Quiet } from "./disk/quiet.ts";
import { stopGuest } from "./disk/stop-guest.ts";
import { baseEnvironment } from "./execution/command-environment.ts";
import { routeExecutions } from "./execution/execution-routes.ts";
import { ExecutionTable } from "./execution/execution-table.ts";
import { PathLooks } from "./execution/path-looks.ts";
import { Tombstones } from "./execution/tombstones.ts";
import { routeFence } from "./fence/fence-routes.ts";
import { admissionBy } from "./fence/judged-methods.ts";
import { openFence } from "./fence/open-fence.ts";
import { routeFiles } from "./file/file-routes.ts";
import { loadLibc } from "./file/libc.ts";
import { Staging } from "./file/staging.ts";
import { WorkspaceTree } from "./file/workspace-tree.ts";
import { routePorts } from "./port/port-routes.ts";
import { readOwnStatus } from "./probe.ts";
import { serveReadiness } from "./ready-server.ts";
import { routeSessions } from "./session/session-routes.ts";
import { openSessions } from "./session/session-table.ts";
import { chooseSpawners } from "./spawn/choose-spawner.ts";
import { choosePipes } from "./spawn/pipes.ts";
import { ResourceUse } from "./use/resource-use.ts";

/** A running agent. */
export interface Agent {
  readonly port: number;
  /** Admits nothing new, ends what runs, writes the disk out, lets readers have the ends, then closes. */
  stop(): Promise<void>;
  /** A program is being started, or a path looked at, in a thread that cannot be ended before the kernel answers, nor can this process exit before that. */
  isStarting(): boolean;
}

/** Between the last command's end and the closing of connections: what was sent has left by then. */
const farewellMs = 250;

/** For what is being started when the agent is told to stop, so that the scans find it. */
const lastStartsMs = 500;

/** Between the last program's end and the last result: what a leftover holds open is waited for. */
const lastResultsMs = 2_000;

/** What this agent serves; each name is announced only with the methods behind it. */
export const servedFeatures: readonly GuestFeature[] = [
  "execution-control",
  "executions",
  "files",
  "flush",
  "holder-epoch",
  "ports",
  "probe",
  "quiesce",
  "sessions",
];

/** Starts to serve. Resolves once it can be asked; rejects when its address or readiness socket cannot be had. */
export async function startAgent(config: AgentConfig, env: NodeJS.ProcessEnv): Promise<Agent> {
  const stateDirectory = stateDirectoryOf(config);
  if (config.stateDirectory === undefined) {
    console.error(
      `no HOLDFAST_AGENT_STATE_DIR: what must outlive the agent is kept in ${stateDirectory}, and goes with the container`,
    );
  }
  const fence = await openFence(stateDirectory); // Before the port opens: a guest that has forgotten its holder must not serve.
  // What runs in the guest is known by this entry, also where the agent does not see the whole pod.
  const mark = { HOLDFAST_GUEST: config.bootId };
  const environment = { ...baseEnvironment(env, config.workspaceRoot), ...mark };
  const helpers = new Set<number>();
  const scope = processScopeOf(`HOLDFAST_GUEST=${config.bootId}`, helpers);
  const quiet = new Quiet();
  const { programs: spawner, helpers: helperSpawner, isBusy, retire, givesTerminals } = chooseSpawners();
  const pipes = choosePipes(`${config.readySocket}.pipes`);
  const looks = new PathLooks(systemClock);
  const root = { path: resolve(config.workspaceRoot), real: await realpath(config.workspaceRoot) };
  const table = new ExecutionTable({
    root,
    looks,
    environment,
    clock: systemClock,
    spawner,
    pipes,
    tombstones: await Tombstones.open(stateDirectory, config.bootId, systemClock.now),
    bootId: config.bootId,
    quiet,
  });
  const router = new Router(admissionBy(fence));
  routeFence(router, fence);
  routeExecutions(router, table, fence, config.bootId);
  const tree = await WorkspaceTree.open(config.workspaceRoot);
  const staging = new Staging(tree, config.workspaceRoot);
  await staging.clear(); // Before the port opens: what stands there then is a former agent's.
  routeFiles(router, { tree, staging, libc: loadLibc(), fence });
  const fileSystem = await fileSystemOf(config.workspaceRoot);
  const flush = fileSystem && new Flush(fileSystem);
  routeDisk(router, { quiesce: new Quiesce(scope, quiet, systemClock), flush, fence });
  const { bootId, workspaceRoot } = config;
  const needs = { root, looks, environment, clock: systemClock, quiet, spawner, pipes };
  const sessions = givesTerminals ? openSessions(needs, stateDirectory, bootId) : undefined;
  if (sessions) routeSessions(router, { table: sessions, fence, bootId, clock: systemClock });
  let ownPort = config.port;
  routePorts(router, { fence, ownPort: () => ownPort, isRetired: () => quiet.isRetired });
  const missing = new Set<GuestFeature>([
    ...(flush ? [] : ["flush" as const]),
    ...(sessions ? [] : ["sessions" as const]),
  ]);
  const use = new ResourceUse({ root: workspaceRoot, podUid: config.token }, systemClock);
  const features = servedFeatures.filter((feature) => !missing.has(feature));
  router
    .unary(AgentService.method.health, async ({ includeUse }) => ({
      serving: !quiet.isRetired,
      quiet: quiet.isQuiet,
      protocolVersion: linkProtocolVersion,
      features: [...features],
      bootId: config.bootId,
      runningExecutions: table.running.length,
      runningSessions: sessions?.running.length ?? 0,
      holderEpoch: fence.epoch,
      unconfirmedExecutions: table.unconfirmed.slice(0, leftoversNamedMax).map(({ wish }) => wish.id),
      ...(includeUse && { use: await use.read() }),
    }))
    .unary(AgentService.method.probe, async () => ({
      processStatus: await readOwnStatus({ spawner: helperSpawner, pipes, environment, helpers }),
    }));

  const link = new LinkServer({ token: config.token, bootId: config.bootId, features }, router, systemClock);
  const port = await link.listen(config.host, config.port);
  ownPort = port;
  const readiness = await serveReadiness(config.readySocket, () => !quiet.isRetired);
  return {
    port,
    async stop() {
      const started = quiet.retire();
      retire();
      for (const execution of table.running) execution.expectEnd("agent-stopped");
      await Promise.race([started, after(lastStartsMs)]);
      await stopGuest(scope, flush);
      const last = [...table.running, ...(sessions?.running ?? [])];
      await Promise.race([Promise.all(last.map(({ ended }) => ended)), after(lastResultsMs)]);
      await after(farewellMs);
      link.close();
      readiness.close();
      tree[Symbol.dispose]();
    },
    isStarting: () => isBusy() || looks.isBusy || use.isBusy,
  };
}

function after(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
