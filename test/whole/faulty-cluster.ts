import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { KubeConfig } from "@kubernetes/client-node";
import { clusterReady, startServiceProcess } from "../../tools/service-process.ts";
import { dataFolder, startServiceOn } from "./harness.ts";

const run = promisify(execFile);
const tool = join(dirname(dirname(import.meta.dirname)), "tools/cluster-faults.ts");

/** An embedded cluster in a process of its own that can be made to fail, a service on it, and its kubeconfig. */
export async function serviceOnFaultyCluster() {
  await using started = new AsyncDisposableStack();
  const folder = started.use(await dataFolder());
  const cluster = started.use(
    await startServiceProcess(["cluster", "--data-dir", folder.path, "--allow-faults"], clusterReady),
  );
  const service = await startServiceOn((cluster.announced[1] ?? "").trim().split(/\s+/));
  started.defer(async () => void (await service.stop()));
  const config = new KubeConfig();
  config.loadFromFile(join(folder.path, "kubeconfig"));
  const all = started.move();
  return {
    service,
    config,
    /** `npm run cluster -- faults` with these words. */
    faults: async (...words: string[]): Promise<string> =>
      (await run(process.execPath, [tool, "--data-dir", folder.path, ...words])).stdout,
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}
