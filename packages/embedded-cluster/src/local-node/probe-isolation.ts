import { rm } from "node:fs/promises";
import { PassThrough } from "node:stream";
import type { Logger } from "pino";
import type { KubeObject } from "../resource-api.ts";
import { ContainerProcess } from "./container-process.ts";
import type { ControlGroups } from "./control-groups.ts";
import { type Isolation, plainRights } from "./isolation.ts";
import type { NodePaths } from "./node-paths.ts";
import { containerLaunchOf, type LaunchKit, prepareLaunchKit, preparePod } from "./pod-launch.ts";
import { planPod } from "./pod-plan.ts";
import type { AgentProgram } from "./pod-root.ts";

const patienceMs = 20_000;

/** Finds how well this machine lets pods be kept apart, by running a trial pod each way, best first. */
export async function probeIsolation(
  paths: NodePaths,
  agent: AgentProgram,
  groups: ControlGroups,
  log: Logger,
): Promise<LaunchKit> {
  const asRoot: readonly Isolation[] = process.geteuid?.() === 0 ? ["namespaces"] : [];
  for (const isolation of [...asRoot, "user-namespaces"] as const) {
    const kit = await prepareLaunchKit(paths, agent, groups, isolation);
    const complaint = await tryPod(kit);
    if (complaint === undefined) return kit;
    log.warn({ isolation, complaint }, "pods cannot be isolated this way on this machine");
  }
  const complaints: string[] = [];
  for (const rights of plainRights) {
    const kit = await prepareLaunchKit(paths, agent, groups, "none", rights);
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
    const plan = planPod(pod);
    const ground = { pod, plan, place, disks: new Map() };
    const container = plan.containers[0];
    if (container === undefined) throw new Error("the trial has no container");
    await preparePod(kit, ground);
    const launch = containerLaunchOf(kit, ground, container);
    const trial = new ContainerProcess(await launch.launchPlan(output));
    timer = setTimeout(() => void trial.kill(), patienceMs);
    const exit = await trial.ended;
    if (exit.started && exit.code === 0) return undefined;
    return exit.complaint === "" ? `exit code ${exit.code}` : exit.complaint;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    clearTimeout(timer);
    for (const folder of [kit.paths.pod(uid), kit.paths.podLogs(uid)])
      await rm(folder, { recursive: true, force: true });
  }
}
