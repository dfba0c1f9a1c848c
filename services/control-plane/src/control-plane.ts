import { randomUUID } from "node:crypto";
import type { DescService } from "@bufbuild/protobuf";
import { ExecutionService } from "@holdfast/api/holdfast/v1/execution_pb";
import { FileService } from "@holdfast/api/holdfast/v1/file_pb";
import { InventoryService } from "@holdfast/api/holdfast/v1/inventory_pb";
import { PortService } from "@holdfast/api/holdfast/v1/port_pb";
import { ServerService } from "@holdfast/api/holdfast/v1/server_pb";
import { SessionService } from "@holdfast/api/holdfast/v1/session_pb";
import { WorkspaceService } from "@holdfast/api/holdfast/v1/workspace_pb";
import { Deadline, systemClock } from "@holdfast/async";
import type { EmbeddedCluster } from "@holdfast/embedded-cluster";
import { guestDialler } from "@holdfast/guest-client";
import { connectKube, type KubeCluster } from "@holdfast/kube";
import type { WorkspaceDeps } from "@holdfast/workspace";
import type { Logger } from "pino";
import type { ListenAddress, ServiceConfig } from "./config/service-config.ts";
import { drainCalls } from "./drain.ts";
import { probeVerdictOn, startEmbedded } from "./embedded.ts";
import { WorkspaceInventory } from "./inventory.ts";
import { assertPortFree } from "./listeners/free-port.ts";
import { GrpcListener } from "./listeners/grpc/grpc-listener.ts";
import type { Listener } from "./listeners/listener.ts";
import { WebListener } from "./listeners/web/web-listener.ts";
import { partLogger } from "./logging.ts";
import { serviceRelaxations } from "./relaxations.ts";
import { executionService } from "./rpc/execution-service.ts";
import { fileService } from "./rpc/file-service.ts";
import { Admission } from "./rpc/interceptors/admission.ts";
import { CallLog } from "./rpc/interceptors/call-log.ts";
import { type ServedMethod, throughPipeline } from "./rpc/interceptors/call-pipeline.ts";
import { inventoryService } from "./rpc/inventory-service.ts";
import { portService } from "./rpc/port-service.ts";
import { serverService } from "./rpc/server-service.ts";
import { type MountedMethod, mountService } from "./rpc/service-implementation.ts";
import { sessionService } from "./rpc/session-service.ts";
import { workspaceService } from "./rpc/workspace-service.ts";
import { type CounterSources, serverInfo } from "./server-info.ts";
import { StartFailure } from "./start-failure.ts";
import { Watching } from "./watching.ts";

/** A service that serves. */
export interface ControlPlane {
  readonly address: ListenAddress;
  /** Of the web listener; undefined when there is none. */
  readonly webAddress: ListenAddress | undefined;
  readonly namespace: string;
  /** Of the embedded cluster; undefined on another one. */
  readonly embedded: Pick<EmbeddedCluster, "kubeconfigPath"> | undefined;
  /** What is relaxed, one sentence each. */
  readonly relaxations: readonly string[];
  /** Why the cluster did not answer at the start; undefined when it did. */
  readonly clusterTrouble: string | undefined;
  /** Drains, then lets everything go. What runs in the guests goes on, except on an embedded cluster, which stops with its service. */
  stop(): Promise<void>;
}

/** How long the first look at the cluster may take; the service serves whatever it shows. */
const firstLookMs = 1_500;

/** Starts a control plane; throws a StartFailure where the configuration or the machine is at fault, and leaves nothing running. */
export async function startControlPlane(config: ServiceConfig, logger: Logger): Promise<ControlPlane> {
  const stops: (() => Promise<void>)[] = [];
  // In reverse of starting: what others use is let go last.
  const stopAll = async (): Promise<void> => {
    for (let stop = stops.pop(); stop; stop = stops.pop()) {
      await stop().catch((error: unknown) => logger.error({ err: error }, "a part did not stop cleanly"));
    }
  };
  try {
    await assertPortFree(config.listen, "--listen");
    if (config.web) await assertPortFree(config.web.listen, "--web-listen");
    const embedded = config.cluster === "embedded" ? await startEmbedded(config, logger) : undefined;
    if (embedded) stops.push(() => embedded.stop());
    const probe = config.probe ?? (embedded ? probeVerdictOn(embedded) : "refuse");

    const cluster = await connect(config, embedded, logger);
    stops.push(() => cluster.close());
    const guests = guestDialler(systemClock);
    const deps = workspaceDeps(config, probe, cluster, guests, logger);
    const watching = new Watching(deps);
    stops.push(async () => watching.close());

    const admission = new Admission();
    const inventory = new WorkspaceInventory(deps, cluster.namespace);
    stops.push(() => inventory.close());
    const services = serve(watching, inventory, guests.counts, { admission, log: new CallLog(logger) });
    const look = firstLook(cluster);
    const listeners: Listener[] = [];
    stops.push(() => drainCalls(listeners, admission));
    const listener = await GrpcListener.open({ listen: config.listen, services, logger });
    listeners.push(listener);
    const web = config.web && (await WebListener.open({ web: config.web, services, logger }));
    if (web) listeners.push(web);
    const clusterTrouble = await look;

    let stopping: Promise<void> | undefined;
    return {
      address: listener.address,
      webAddress: web?.address,
      namespace: cluster.namespace,
      embedded,
      relaxations: [...serviceRelaxations(config, probe), ...(embedded?.relaxations ?? [])],
      clusterTrouble,
      stop: () => {
        stopping ??= stopAll();
        return stopping;
      },
    };
  } catch (error) {
    await stopAll();
    throw error;
  }
}

/** Every service, behind what every call passes. */
function serve(
  watching: Watching,
  inventory: WorkspaceInventory,
  guests: CounterSources["guests"],
  deps: Parameters<typeof throughPipeline>[1],
): Map<DescService, ServedMethod[]> {
  const { registry } = watching;
  const behind = (methods: readonly MountedMethod[]): ServedMethod[] =>
    methods.map((method) => throughPipeline(method, deps));
  const services = new Map<DescService, ServedMethod[]>([
    [WorkspaceService, behind(mountService(WorkspaceService, workspaceService(registry, watching)))],
    [ExecutionService, behind(mountService(ExecutionService, executionService(registry)))],
    [SessionService, behind(mountService(SessionService, sessionService(registry)))],
    [PortService, behind(mountService(PortService, portService(registry)))],
    [FileService, behind(mountService(FileService, fileService(registry)))],
    [InventoryService, behind(mountService(InventoryService, inventoryService(inventory, registry)))],
  ]);
  const { admission } = deps;
  const sources = { registry, admission, guests, watches: [watching, inventory] };
  const info = () => serverInfo(services.keys(), sources);
  return services.set(ServerService, behind(mountService(ServerService, serverService(info))));
}

async function connect(
  config: ServiceConfig,
  embedded: EmbeddedCluster | undefined,
  logger: Logger,
): Promise<KubeCluster> {
  const kubeconfigPath = embedded?.kubeconfigPath ?? config.kubeconfig;
  const log = partLogger(logger, "kube");
  try {
    return await connectKube({
      access: kubeconfigPath === undefined ? clusterAccess() : { kubeconfigPath },
      namespace: config.namespace ?? embedded?.namespace,
      disk: config.disk,
      clock: systemClock,
      log: {
        info: (message, facts) => log.info(facts ?? {}, message),
        warn: (message, facts) => log.warn(facts ?? {}, message),
        error: (message, facts) => log.error(facts ?? {}, message),
      },
    });
  } catch (error) {
    // Nothing is sent yet: whatever fails here is how the cluster was configured.
    throw new StartFailure(error instanceof Error ? error.message : String(error), error);
  }
}

/** Without --kubeconfig: the pod's own account where there is one and no KUBECONFIG, else the client's own search. */
function clusterAccess(): { readonly inCluster: true } | Record<string, never> {
  const { KUBECONFIG, KUBERNETES_SERVICE_HOST } = process.env;
  return !KUBECONFIG && KUBERNETES_SERVICE_HOST ? { inCluster: true } : {};
}

function workspaceDeps(
  config: ServiceConfig,
  probe: "refuse" | "report",
  cluster: KubeCluster,
  guests: WorkspaceDeps["guests"],
  logger: Logger,
): WorkspaceDeps {
  const log = partLogger(logger, "workspace");
  return {
    cluster,
    guests,
    clock: systemClock,
    randomId: randomUUID,
    policy: {
      defaultTemplate: config.template,
      disk: config.disk,
      probe,
      ingress: config.ingress,
      agentAddress: config.agentAddress,
      runtimeClassName: undefined,
    },
    log: {
      info: (facts, message) => log.info(facts, message),
      warn: (facts, message) => log.warn(facts, message),
    },
  };
}

/** Asks the cluster for one object: what an operator should hear at the start, and nothing that the service depends on. */
async function firstLook(cluster: KubeCluster): Promise<string | undefined> {
  using within = new Deadline(systemClock, firstLookMs);
  try {
    await cluster.listSandboxes({ limit: 1, continueToken: undefined }, within);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
