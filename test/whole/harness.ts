import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as lookAgain } from "node:timers/promises";
import { type Client, Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { ErrorInfoSchema } from "@holdfast/api/google/rpc/error_details_pb";
import { ExecutionService } from "@holdfast/api/holdfast/v1/execution_pb";
import { FileService } from "@holdfast/api/holdfast/v1/file_pb";
import { InventoryService } from "@holdfast/api/holdfast/v1/inventory_pb";
import { PortService } from "@holdfast/api/holdfast/v1/port_pb";
import { ServerService } from "@holdfast/api/holdfast/v1/server_pb";
import { SessionService } from "@holdfast/api/holdfast/v1/session_pb";
import { WorkspaceService } from "@holdfast/api/holdfast/v1/workspace_pb";
import { clusterReady, type ServiceProcess, serviceReady, startServiceProcess } from "../../tools/service-process.ts";
import { givenKubeconfig, openGivenNamespace } from "../given-cluster.ts";

/** Clients of one service. */
export interface Clients {
  readonly workspaces: Client<typeof WorkspaceService>;
  readonly executions: Client<typeof ExecutionService>;
  readonly files: Client<typeof FileService>;
  readonly inventory: Client<typeof InventoryService>;
  readonly server: Client<typeof ServerService>;
  readonly sessions: Client<typeof SessionService>;
  readonly ports: Client<typeof PortService>;
}

export function clientsOf(target: string): Clients {
  return clientsBy(createGrpcTransport({ baseUrl: `http://${target}` }));
}

/** Clients of the same service by Connect, on its web listener. */
export function webClientsOf(service: Pick<ServiceProcess, "lines">): Clients {
  return clientsBy(createConnectTransport({ baseUrl: `http://${webTargetOf(service)}`, httpVersion: "2" }));
}

/** Clients by Connect over HTTP/1.1. */
export function http1ClientsOf(target: string): Clients {
  return clientsBy(createConnectTransport({ baseUrl: `http://${target}`, httpVersion: "1.1" }));
}

/** Where the service's web listener listens. */
export function webTargetOf({ lines }: Pick<ServiceProcess, "lines">): string {
  const target = /http:\/\/(127\.0\.0\.1:\d+)/.exec(lines.join("\n"))?.[1];
  if (target === undefined) throw new Error("the service does not say where its web listener is");
  return target;
}

function clientsBy(transport: Transport): Clients {
  return {
    workspaces: createClient(WorkspaceService, transport),
    executions: createClient(ExecutionService, transport),
    files: createClient(FileService, transport),
    inventory: createClient(InventoryService, transport),
    server: createClient(ServerService, transport),
    sessions: createClient(SessionService, transport),
    ports: createClient(PortService, transport),
  };
}

/** A folder that is removed at the end. */
export async function dataFolder(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), "holdfast-test-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true, maxRetries: 3 }) };
}

/** A service on an embedded cluster in the same process, or on the given cluster. */
export async function startService(
  dataDir: string,
  flags: readonly string[] = [],
): Promise<ServiceProcess & Clients & { target: string }> {
  if (givenKubeconfig !== undefined) return await startServiceOnGiven(givenKubeconfig, dataDir, flags);
  const service = await startServiceProcess(
    ["serve", "--listen", "127.0.0.1:0", "--web-listen", "127.0.0.1:0", "--data-dir", dataDir, ...flags],
    serviceReady,
  );
  const target = service.announced[1] ?? "";
  return { ...service, ...clientsOf(target), target };
}

async function startServiceOnGiven(kubeconfig: string, dataDir: string, flags: readonly string[]) {
  const namespace = await openGivenNamespace(kubeconfig, dataDir);
  const service = await startServiceOn([...namespace.flags, ...flags]);
  return {
    ...service,
    [Symbol.asyncDispose]: async () => {
      await service.stop();
      await namespace[Symbol.asyncDispose]();
    },
  };
}

/** What a service needs to use a cluster that runs apart from it. */
export interface ClusterApart extends AsyncDisposable {
  readonly flags: readonly string[];
}

/** An embedded cluster alone, or a namespace of the given one. */
export async function startCluster(dataDir: string): Promise<ClusterApart> {
  if (givenKubeconfig !== undefined) return await openGivenNamespace(givenKubeconfig, dataDir);
  return await startEmbedded(dataDir);
}

/** An embedded cluster alone, whatever is given: for tests that stop and kill it. */
export async function startEmbedded(dataDir: string): Promise<ServiceProcess & { flags: readonly string[] }> {
  const cluster = await startServiceProcess(["cluster", "--data-dir", dataDir], clusterReady);
  return { ...cluster, flags: (cluster.announced[1] ?? "").trim().split(/\s+/) };
}

/** A service on a cluster elsewhere. */
export async function startServiceOn(flags: readonly string[]): Promise<ServiceProcess & Clients & { target: string }> {
  const service = await startServiceProcess(
    ["serve", "--listen", "127.0.0.1:0", "--web-listen", "127.0.0.1:0", ...flags],
    serviceReady,
  );
  const target = service.announced[1] ?? "";
  return { ...service, ...clientsOf(target), target };
}

export interface ShellResult {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number | undefined;
}

/** Runs a shell line in a workspace. */
export async function shell({ executions }: Clients, workspaceId: string, line: string): Promise<ShellResult> {
  const done = await executions.runCommand({ workspaceId, command: "sh", args: ["-c", line] });
  const status = done.exited?.status;
  return {
    stdout: Buffer.from(done.stdout).toString("utf8"),
    stderr: Buffer.from(done.stderr).toString("utf8"),
    code: status?.case === "exitCode" ? status.value : undefined,
  };
}

/** The reason that a call failed with; throws when it did not fail. */
export async function reasonOf(
  call: Promise<unknown>,
): Promise<{ reason: string; code: string; metadata: Record<string, string>; message: string }> {
  try {
    await call;
  } catch (error) {
    const failure = ConnectError.from(error);
    const info = failure.findDetails(ErrorInfoSchema)[0];
    return {
      reason: info?.reason ?? "none",
      code: Code[failure.code],
      metadata: info?.metadata ?? {},
      message: failure.rawMessage,
    };
  }
  throw new Error("the call succeeded");
}

/** Resolves with what `look` finds; rejects when it has found nothing for `withinMs`. */
export async function eventually<T>(withinMs: number, look: () => Promise<T | undefined>): Promise<T> {
  const endsAt = performance.now() + withinMs;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (performance.now() > endsAt) throw new Error(`did not hold within ${withinMs} ms: ${look}`);
    await lookAgain(25);
  }
}

/** The pids of processes whose command line or environment names `text`. */
export async function processesNaming(text: string): Promise<number[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
  const found = await Promise.all(
    pids.map(async (pid) => {
      if (pid === process.pid) return undefined;
      const texts = await Promise.all(
        ["cmdline", "environ"].map((file) => readFile(`/proc/${pid}/${file}`, "utf8").catch(() => "")),
      );
      return texts.some((content) => content.includes(text)) ? pid : undefined;
    }),
  );
  return found.filter((pid) => pid !== undefined);
}
