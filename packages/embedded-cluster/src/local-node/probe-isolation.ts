import { rm } from "node:fs/promises";
import { PassThrough } from "node:stream";
import type { Logger } from "pino";
import type { KubeObject } from "../resource-api.ts";
import { ContainerProcess } from "./container-process.ts";
import type { Isolation } from "./isolation.ts";
import type { NodePaths } from "./node-paths.ts";
import { type LaunchKit, podLaunchOf, prepareLaunchKit } from "./pod-launch.ts";
import { planPod } from "./pod-plan.ts";
import type { AgentProgram } from "./pod-root.ts";

const patienceMs = 20_000;

/** Finds how well this machine lets pods be kept apart, by running a trial pod each way, best first. */
export async function probeIsolation(paths: NodePaths, agent: AgentProgram, log: Logger): Promise<LaunchKit> {
  const ways: Isolation[] = process.geteuid?.() === 0 ? ["namespaces"] : ["user-namespaces"];
  for (const isolation of ways) {
    const kit = await prepareLaunchKit(paths, agent, isolation);
    const complaint = await tryPod(kit);
    if (complaint === undefined) return kit;
    log.warn({ isolation, complaint }, "pods cannot be isolated this way on this machine");
  }
  return prepareLaunchKit(paths, agent, "none");
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
