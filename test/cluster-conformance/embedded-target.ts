import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type EmbeddedCluster, guestAgentImage, startEmbeddedCluster } from "@holdfast/embedded-cluster";
import { pino } from "pino";
import { openTarget, type Target } from "./target.ts";

export interface PlainCluster extends AsyncDisposable {
  readonly cluster: EmbeddedCluster;
}

/** An embedded cluster for one run, whose pods run what their command says. */
export async function startPlainCluster(): Promise<PlainCluster> {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-conformance-"));
  const directory = await mkdtemp(join(tmpdir(), "holdfast-agent-"));
  await chmod(directory, 0o755); // a pod's user is not ours
  await writeFile(join(directory, "main.mjs"), "setInterval(() => undefined, 1 << 30);");
  await writeFile(join(directory, "ready.mjs"), "");
  const cluster = await startEmbeddedCluster({
    dataDir: join(folder, "data"),
    agent: { image: guestAgentImage, nodePath: process.execPath, directory, entry: "main.mjs" },
    log: pino({ level: "silent" }),
  });
  return {
    cluster,
    [Symbol.asyncDispose]: async () => {
      await cluster.stop();
      for (const path of [folder, directory]) await rm(path, { recursive: true, force: true, maxRetries: 3 });
    },
  };
}

/** The suite's target on an embedded cluster of its own. */
export async function startEmbeddedTarget(): Promise<Target> {
  const plain = await startPlainCluster();
  const { cluster } = plain;
  const target = await openTarget({ kubeconfig: cluster.kubeconfigPath, compact: async () => cluster.compact() });
  return {
    ...target,
    [Symbol.asyncDispose]: async () => {
      await target[Symbol.asyncDispose]();
      await plain[Symbol.asyncDispose]();
    },
  };
}
