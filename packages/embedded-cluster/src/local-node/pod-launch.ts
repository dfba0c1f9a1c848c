import { chown, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Writable } from "node:stream";
import type { KubeObject } from "../resource-api.ts";
import { type ContainerCall, containerCallOf, type PodPlace } from "./container-env.ts";
import type { LaunchPlan } from "./container-process.ts";
import { dropRights, enterNewNamespaces, enterPod, type Isolation, ownerOutside, trustedEnv } from "./isolation.ts";
import type { NodePaths } from "./node-paths.ts";
import type { PodPlan } from "./pod-plan.ts";
import { endMarkedProcesses, podMark } from "./pod-processes.ts";
import {
  type AgentProgram,
  baseMounts,
  inPod,
  type MountLine,
  makeMountPoint,
  mountTable,
  scriptsDirectory,
} from "./pod-root.ts";
import type { InsidePod } from "./probe-attempt.ts";
import { identifyProcess } from "./process-identity.ts";

/** What the node has for every pod. */
export interface LaunchKit {
  readonly isolation: Isolation;
  readonly paths: NodePaths;
  readonly agent: AgentProgram;
  /** The mounts of every pod (baseMounts). */
  readonly mounts: readonly MountLine[];
  /** Where there are no namespaces: the command line that takes rights away (plainRights). */
  readonly plainRights: readonly string[];
}

/** Prepares what all pods share. */
export async function prepareLaunchKit(
  paths: NodePaths,
  agent: AgentProgram,
  isolation: Isolation,
  plainRights: readonly string[] = [],
): Promise<LaunchKit> {
  return { isolation, paths, agent, mounts: await baseMounts(paths, agent, isolation), plainRights };
}

/** One pod ready to be run, as often as its container is restarted. */
export interface PodLaunch {
  /** How to start the container. */
  launchPlan(output: Writable): Promise<LaunchPlan>;
  /** How to run a command beside it. */
  inside(command: readonly string[], running: { readonly launcherPid: number; readonly initPid: number }): InsidePod;
}

/** Works out how a pod is run; `disks` gives the folder of each claimed volume. Throws UnsupportedPodError. */
export function podLaunchOf(
  kit: LaunchKit,
  pod: KubeObject,
  plan: PodPlan,
  place: PodPlace,
  disks: ReadonlyMap<string, string>,
): PodLaunch {
  const uid = pod.metadata.uid ?? "";
  const { paths, isolation, agent } = kit;
  const call = containerCallOf(pod, plan, place, [inPod.node, join(inPod.agent, agent.entry)]);
  const sourceOf = (volume: string) => disks.get(volume) ?? paths.emptyDir(uid, volume);
  const beforeStart = async (initPid: number) => {
    const identity = await identifyProcess(initPid);
    const left = identity === undefined ? null : { ...identity, isGroup: isolation === "none" };
    await writeFile(paths.processRecord(uid), JSON.stringify(left), { mode: 0o600 });
  };
  const prepareFolders = async () => {
    await mkdir(paths.pod(uid), { recursive: true, mode: 0o700 });
    const owner = ownerOutside(isolation);
    for (const volume of plan.volumes) {
      if (volume.t !== "emptyDir") continue;
      await mkdir(paths.emptyDir(uid, volume.name), { recursive: true, mode: 0o700 });
      await chown(paths.emptyDir(uid, volume.name), owner.uid, owner.gid);
    }
  };

  if (isolation === "none") return plainLaunch(kit, plan, call, uid, sourceOf, prepareFolders, beforeStart);

  const table = mountTable(paths.root, [
    ...kit.mounts,
    ...plan.mounts.map((mount): MountLine => {
      const volume = plan.volumes.find((other) => other.name === mount.volume);
      const readOnly = mount.readOnly || (volume?.t === "claim" && volume.readOnly);
      const options = ["bind", ...(readOnly ? ["ro"] : []), "nosuid", "nodev", makeMountPoint];
      return { source: sourceOf(mount.volume), path: mount.path, type: "none", options };
    }),
  ]);
  const env = numberedEnv(call, plan.workingDir);
  const [file = "", ...enter] = enterNewNamespaces(isolation);
  const setup = ["/bin/sh", join(scriptsDirectory, "pod-setup.sh")];
  const init = [...dropRights(isolation), "/bin/sh", `${inPod.scripts}/pod-init.sh`];
  const exec = ["/bin/sh", `${inPod.scripts}/pod-exec.sh`];
  return {
    async launchPlan(output) {
      await prepareFolders();
      await writeFile(paths.mountTable(uid), table, { mode: 0o600 });
      const places = [paths.root, paths.skeleton, paths.mountTable(uid), pod.metadata.name];
      const args = [...enter, ...setup, ...places, ...init, ...exec, ...call.command];
      return { file, args, env, endSurvivors: undefined, output, beforeStart };
    },
    inside(command, running) {
      const [tool = "", ...args] = [...enterPod(isolation, running), ...dropRights(isolation), ...exec, ...command];
      return { file: tool, args, env };
    },
  };
}

/**
 * Without namespaces the pod sees the host's own paths, so every place of the pod that its command or variables name is
 * replaced by the folder that stands for it.
 */
function plainLaunch(
  kit: LaunchKit,
  plan: PodPlan,
  call: ContainerCall,
  uid: string,
  sourceOf: (volume: string) => string,
  prepareFolders: () => Promise<void>,
  beforeStart: LaunchPlan["beforeStart"],
): PodLaunch {
  const home = join(kit.paths.pod(uid), "home");
  const places: ReadonlyArray<readonly [string, string]> = [
    [inPod.node, kit.agent.nodePath],
    [inPod.agent, kit.agent.directory],
    [call.env.get("HOME") ?? "/", home],
    ...plan.mounts.map((mount) => [mount.path, sourceOf(mount.volume)] as const),
  ];
  const onHost = (text: string) => {
    const place = places.find(([inside]) => text === inside || text.startsWith(`${inside}/`));
    return place === undefined ? text : place[1] + text.slice(place[0].length);
  };
  const command = call.command.map(onHost);
  const env = new Map([...call.env].map(([name, value]) => [name, onHost(value)]));
  env.set(podMark, uid);
  const numbered = numberedEnv({ env, command }, onHost(plan.workingDir));
  const rights = kit.plainRights;
  const exec = ["/bin/sh", join(scriptsDirectory, "pod-exec.sh")];
  return {
    async launchPlan(output) {
      await prepareFolders();
      await mkdir(home, { recursive: true, mode: 0o700 });
      const init = ["/bin/sh", join(scriptsDirectory, "pod-init.sh")];
      const [file = "", ...args] = [...rights, ...init, ...rights, ...exec, ...command];
      return { file, args, env: numbered, endSurvivors: () => endMarkedProcesses(uid), output, beforeStart };
    },
    inside(probeCommand) {
      const [file = "", ...args] = [...rights, ...exec, ...probeCommand.map(onHost)];
      return { file, args, env: numbered };
    },
  };
}

/** The pod's variables as pod-exec.sh takes them: under names that mean nothing to the steps before it. */
function numberedEnv(call: ContainerCall, workingDir: string): Record<string, string> {
  const numbered: Record<string, string> = { ...trustedEnv, POD_CWD: workingDir, POD_ENV_COUNT: `${call.env.size}` };
  let index = 0;
  for (const [name, value] of call.env) numbered[`POD_ENV_${index++}`] = `${name}=${value}`;
  return numbered;
}
