import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { clusterReady, type ServiceProcess, serviceReady, startServiceProcess } from "./service-process.ts";

/** Where the demo's service listens. Disposing stops what was started for it and removes its data. */
export interface DemoServers extends AsyncDisposable {
  readonly target: string;
}

/** Starts a service (and, when `separate`, a cluster in a process of its own) unless one is given by `target`. */
export async function startServers(wish: {
  readonly separate?: boolean | undefined;
  readonly target?: string | undefined;
}): Promise<DemoServers> {
  if (wish.target !== undefined) return { target: wish.target, [Symbol.asyncDispose]: async () => {} };
  const dataDir = await mkdtemp(join(tmpdir(), "holdfast-demo-"));
  const started: ServiceProcess[] = [];
  const dispose = async (): Promise<void> => {
    for (const process of started.reverse()) await process.stop();
    await rm(dataDir, { recursive: true, force: true });
  };
  try {
    let clusterFlags = ["--data-dir", dataDir];
    if (wish.separate) {
      const cluster = await startServiceProcess(["cluster", "--data-dir", dataDir], clusterReady);
      started.push(cluster);
      clusterFlags = (cluster.announced[1] ?? "").trim().split(/\s+/);
    }
    const service = await startServiceProcess(
      ["serve", "--listen", "127.0.0.1:0", "--web-listen", "off", ...clusterFlags],
      serviceReady,
    );
    started.push(service);
    return { target: service.announced[1] ?? "", [Symbol.asyncDispose]: dispose };
  } catch (error) {
    await dispose();
    throw error;
  }
}
