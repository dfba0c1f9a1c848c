import { randomUUID } from "node:crypto";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Deadline, systemClock } from "@holdfast/async";
import type { WorkspaceId } from "@holdfast/contract";
import { type Faults, guestAgentImage, startEmbeddedCluster } from "@holdfast/embedded-cluster";
import { connectKube, type KubeCluster, type KubeOptions } from "@holdfast/kube";
import type { CreateWish, PodReading, SandboxReading } from "@holdfast/workspace";
import { pino } from "pino";
import { givenKubeconfig, openGivenNamespace } from "../given-cluster.ts";

/** An embedded cluster whose pods run a program that only stays, or a namespace of the given one, and a client of it. */
export interface TestCluster extends AsyncDisposable {
  readonly cluster: KubeCluster;
  readonly faults: Faults;
  readonly kubeconfigPath: string;
  readonly warnings: readonly string[];
  connect(more?: Partial<KubeOptions>): Promise<KubeCluster>;
}

const staying = "process.on('SIGTERM', () => process.exit(0)); setInterval(() => undefined, 1 << 30);";

export async function startTestCluster(): Promise<TestCluster> {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-kube-"));
  const under = givenKubeconfig === undefined ? await startEmbedded(folder) : await onGiven(givenKubeconfig, folder);
  const warnings: string[] = [];
  const log = { info: () => undefined, warn: (line: string) => void warnings.push(line), error: () => undefined };
  const access = { kubeconfigPath: under.kubeconfigPath };
  const connect = (more: Partial<KubeOptions> = {}) => connectKube({ access, disk: "filesystem", log, ...more });
  const cluster = await connect();
  return {
    cluster,
    get faults() {
      return under.faults;
    },
    kubeconfigPath: under.kubeconfigPath,
    warnings,
    connect,
    [Symbol.asyncDispose]: async () => {
      await cluster.close();
      await under[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true, maxRetries: 3 });
    },
  };
}

/** What a client stands on. */
interface Underlying extends AsyncDisposable {
  readonly kubeconfigPath: string;
  readonly faults: Faults;
}

async function startEmbedded(folder: string): Promise<Underlying> {
  const directory = await mkdtemp(join(tmpdir(), "holdfast-agent-"));
  await chmod(directory, 0o755); // a pod's user is not ours
  await writeFile(join(directory, "main.mjs"), staying);
  await writeFile(join(directory, "ready.mjs"), "");
  const embedded = await startEmbeddedCluster({
    dataDir: join(folder, "data"),
    agent: { image: guestAgentImage, nodePath: process.execPath, directory, entry: "main.mjs" },
    log: pino({ level: "silent" }),
  });
  return {
    kubeconfigPath: embedded.kubeconfigPath,
    faults: embedded.faults,
    [Symbol.asyncDispose]: async () => {
      await embedded.stop();
      await rm(directory, { recursive: true, force: true, maxRetries: 3 });
    },
  };
}

async function onGiven(kubeconfig: string, folder: string): Promise<Underlying> {
  const namespace = await openGivenNamespace(kubeconfig, folder);
  return {
    kubeconfigPath: namespace.kubeconfigPath,
    get faults(): never {
      throw new Error("the given cluster cannot be made to fail");
    },
    [Symbol.asyncDispose]: () => namespace[Symbol.asyncDispose](),
  };
}

/** A deadline that nothing here should need. */
export const within = (budgetMs = 30_000): Deadline => new Deadline(systemClock, budgetMs);

/** Waits as the domain does: subscribe, then read at every wake, until it is so. */
export async function awaitPods(
  cluster: KubeCluster,
  sandbox: Pick<SandboxReading, "name" | "uid">,
  isSo: (pods: readonly PodReading[]) => boolean,
): Promise<readonly PodReading[]> {
  using limit = within();
  using changes = cluster.changes(sandbox.name);
  for (;;) {
    const pods = await cluster.readPods(sandbox, limit);
    if (isSo(pods)) return pods;
    await changes.next(limit.signal).catch((cause: unknown) => {
      throw new Error(`still so: ${JSON.stringify(pods)}`, { cause });
    });
  }
}

/** The wish for a workspace from the default template. */
export async function wishFor(cluster: KubeCluster, id: string): Promise<CreateWish> {
  using limit = within();
  const template = await cluster.readTemplate("default", limit);
  return { id: id as WorkspaceId, template, createdBy: "creator", writtenBy: randomUUID() };
}

/** A workspace that was created and suspended. The controller's own writes refuse a suspend as a condition, so it is tried again. */
export async function createSuspended(cluster: KubeCluster, id: string): Promise<SandboxReading> {
  using limit = within();
  const created = await cluster.createSandbox(await wishFor(cluster, id), limit);
  if (created.t !== "applied") throw new Error(`not created: ${created.t}`);
  for (;;) {
    const reading = await cluster.readSandbox(created.value.name, limit);
    if (reading === undefined) throw new Error(`${created.value.name} is not there`);
    if (reading.mode === "Suspended") return reading;
    const wish = { reading, mode: "Suspended" as const, writtenBy: randomUUID(), now: Date.now() };
    await cluster.setMode({ ...wish, volumeClaimUids: undefined }, limit);
  }
}
