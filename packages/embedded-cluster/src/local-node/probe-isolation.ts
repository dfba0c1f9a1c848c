import { rm } from "node:fs/promises";
import { PassThrough } from "node:stream";
import type { Logger } from "pino";
import type { KubeObject } from "../resource-api.ts";
import { ContainerProcess } from "./container-process.ts";
import { type Isolation, plainRights } from "./isolation.ts";
import type { NodePaths } from "./node-paths.ts";
import { type LaunchKit, podLaunchOf, prepareLaunchKit } from "./pod-launch.ts";
import { planPod } from "./pod-plan.ts";
import type { AgentProgram } from "./pod-root.ts";

const patienceMs = 20_000;

/** Finds how well this machine lets pods be kept apart, by running a trial pod each way, best first. */
export async function probeIsolation(paths: NodePaths, agent: AgentProgram, log: Logger): Promise<LaunchKit> {
  const asRoot: readonly Isolation[] = process.geteuid?.() === 0 ? ["namespaces"] : [];
  for (const isolation of [...asRoot, "user-namespaces"] as const) {
    const kit = await prepareLaunchKit(paths, agent, isolation);
    const complaint = await tryPod(kit);
    if (complaint === undefined) return kit;
    log.warn({ isolation, complaint }, "pods cannot be isolated this way on this machine");
  }
  const complaints: string[] = [];
  for (const rights of plainRights) {
    const kit = await prepareLaunchKit(paths, agent, "none", rights);
    const complaint = await tryPod(kit);
    if (complaint === undefined) return kit;
    complaints.push(complaint);
  }
  throw new Error(`No pod can be started on this machine: ${complaints.join("; ")}`);
}

/** Runs `true` as a pod would run. Answers why not, where it fails. */
async function tryPod(kit: LaunchKit): Promise<string | undefined> {
  const uid = "isolation-trial";
  const pod: KubeObject = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: uid, uid },
    spec: { containers: [{ name: "trial", image: kit.agent.image, command: ["true"] }] },
  };
  const place = { nodeName: "", podIp: "127.0.0.1", hostIp: "127.0.0.1" };
  const output = new PassThrough().resume();
  let timer: NodeJS.Timeout | undefined;
  try {
    const launch = podLaunchOf(kit, pod, planPod(pod), place, new Map());
    const trial = new ContainerProcess(await launch.launchPlan(output));
    timer = setTimeout(() => void trial.kill(), patienceMs);
    const exit = await trial.ended;
    if (exit.started && exit.code === 0) return undefined;
    return exit.complaint === "" ? `exit code ${exit.code}` : exit.complaint;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    clearTimeout(timer);
    await rm(kit.paths.pod(uid), { recursive: true, force: true });
  }
}
