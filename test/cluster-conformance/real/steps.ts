import { join } from "node:path";
import { guestAgentImage } from "@holdfast/embedded-cluster";
import { serviceReady, startServiceProcess } from "../../../tools/service-process.ts";
import { runKept } from "./kept-process.ts";
import type { ProgramFolder } from "./programs.ts";
import type { RealCluster } from "./real-cluster.ts";
import type { MarkedEnvironment } from "./run-mark.ts";

/** One thing to run against the cluster; resolves with an exit code. */
export interface Step {
  readonly name: string;
  run(signal: AbortSignal): Promise<number>;
}

const root = join(import.meta.dirname, "../../..");
const script = (path: string) => ["--disable-warning=ExperimentalWarning", join(root, path)];

/** The conformance suite, the tests of a whole service and the demo, all as on the embedded cluster. */
export function stepsOn(cluster: RealCluster, versions: ProgramFolder["versions"], record: string | undefined): Step[] {
  const env = cluster.mark;
  const suite = [
    "--kubeconfig",
    cluster.kubeconfigPath,
    "--image",
    guestAgentImage,
    "--node-path",
    "/opt/holdfast/node",
  ];
  const header = ["--etcd", cluster.etcdUrl, "--controller", versions.agentSandbox];
  const recorded =
    record === undefined ? [] : ["--record", record, ...cluster.flags.flatMap((flag) => ["--flag", flag])];
  const conformance = [...script("test/cluster-conformance/main.ts"), ...suite, ...header, ...recorded];
  return [
    { name: "conformance suite", run: (signal) => runKept(process.execPath, conformance, signal, env) },
    { name: "tests of the service", run: (signal) => runTests(cluster, signal, env) },
    { name: "demo", run: (signal) => runDemo(cluster, signal, env) },
  ];
}

/** Tests that run on an embedded cluster each by default and hold as well on one that is given. */
const tests = ["kube/lifecycle", "whole/tour", "whole/suspend", "whole/files", "whole/inventory", "whole/drain"];

function runTests(cluster: RealCluster, signal: AbortSignal, env: MarkedEnvironment): Promise<number> {
  const vitest = join(root, "node_modules/vitest/vitest.mjs");
  const files = tests.map((name) => `test/${name}.test.ts`);
  const argv = [vitest, "run", "--root", root, ...files];
  return runKept(process.execPath, argv, signal, { ...env, HOLDFAST_TEST_KUBECONFIG: cluster.kubeconfigPath });
}

/** A step takes minutes; one that takes this long has come to a stand. */
const stepMs = 20 * 60_000;

/** Runs every step, whatever became of those before, and answers 0 only if all did. */
export async function runSteps(
  steps: readonly Step[],
  signal: AbortSignal,
  say: (line: string) => void,
): Promise<number> {
  const results: string[] = [];
  let code = 0;
  for (const { name, run } of steps) {
    if (signal.aborted) return 130;
    const began = performance.now();
    const late = AbortSignal.timeout(stepMs);
    const ended = await run(AbortSignal.any([signal, late]));
    code = Math.max(code, ended === 0 ? 0 : 1);
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    const why = late.aborted ? "ended, for it took too long" : `exit code ${ended}`;
    results.push(`${name}: ${ended === 0 ? "passed" : `FAILED (${why})`} in ${seconds} s`);
  }
  for (const result of results) say(result);
  return signal.aborted ? 130 : code;
}

async function runDemo(cluster: RealCluster, signal: AbortSignal, env: MarkedEnvironment): Promise<number> {
  // What production has at its defaults is asked of nobody here: block disks and enforced policies.
  const relaxed = ["--disk", "filesystem", "--ingress", "unverified", "--template", "default"];
  const access = ["--cluster", "kubernetes", "--kubeconfig", cluster.kubeconfigPath];
  const listen = ["--listen", "127.0.0.1:0", "--web-listen", "off"];
  await using service = await startServiceProcess(["serve", ...listen, ...access, ...relaxed], serviceReady, { env });
  return await runKept(
    process.execPath,
    [...script("tools/demo.ts"), "--target", service.announced[1] ?? ""],
    signal,
    env,
  );
}
