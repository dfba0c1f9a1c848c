import { chown, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Writable } from "node:stream";
import type { KubeObject } from "../resource-api.ts";
import { type ContainerCall, containerCallOf, type PodPlace } from "./container-env.ts";
import type { ContainerPlan } from "./container-plan.ts";
import type { LaunchPlan } from "./container-process.ts";
import type { ContainerGroup, ControlGroups } from "./control-groups.ts";
import { dropRights, enterNewNamespaces, enterPod, type Isolation, ownerOutside, trustedEnv } from "./isolation.ts";
import type { LeftOver } from "./left-over.ts";
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
  /** Enforces limits, as far as the kernel lets it. */
  readonly groups: ControlGroups;
}

/** Prepares what all pods share. */
export async function prepareLaunchKit(
  paths: NodePaths,
  agent: AgentProgram,
  groups: ControlGroups,
  isolation: Isolation,
  plainRights: readonly string[] = [],
): Promise<LaunchKit> {
  return { isolation, paths, agent, groups, mounts: await baseMounts(paths, agent, isolation), plainRights };
}

/** One container ready to be run, as often as it is restarted. */
export interface ContainerLaunch {
  /** How to start it. */
  launchPlan(output: Writable): Promise<LaunchPlan>;
  /** To be called after each run, when nothing of it is left. */
  afterEnd(): Promise<{ readonly ranOutOfMemory: boolean }>;
  /** How to run a command beside it. */
  inside(command: readonly string[], running: { readonly launcherPid: number; readonly initPid: number }): InsidePod;
}

/** What a pod's containers share: its object, volumes and place. `disks` are those of its claimed volumes. */
export interface PodGround {
  readonly pod: KubeObject;
  readonly plan: Pick<PodPlan, "volumes">;
  readonly place: PodPlace;
  readonly disks: ReadonlyMap<string, { readonly path: string; readonly uid: string }>;
}

/** Makes what a pod has before any of its containers runs, and for as long as it is there: its emptyDirs. */
export async function preparePod({ paths, isolation }: LaunchKit, { pod, plan }: PodGround): Promise<void> {
  const uid = pod.metadata.uid ?? "";
  await mkdir(paths.podLogs(uid), { recursive: true, mode: 0o700 });
  const owner = ownerOutside(isolation);
  for (const volume of plan.volumes) {
    if (volume.t !== "emptyDir") continue;
    await mkdir(paths.emptyDir(uid, volume.name), { recursive: true, mode: 0o700 });
    await chown(paths.emptyDir(uid, volume.name), owner.uid, owner.gid);
  }
}

/** Works out how a container is run. Throws UnsupportedPodError. */
export function containerLaunchOf(kit: LaunchKit, ground: PodGround, container: ContainerPlan): ContainerLaunch {
  const { pod, plan, disks } = ground;
  const uid = pod.metadata.uid ?? "";
  const { paths, isolation, agent } = kit;
  const call = containerCallOf(pod, container, ground.place, [inPod.node, join(inPod.agent, agent.entry)]);
  const sourceOf = (volume: string) => disks.get(volume)?.path ?? paths.emptyDir(uid, volume);
  let group: ContainerGroup | undefined;
  const beforeStart = async (initPid: number) => {
    const identity = await identifyProcess(initPid);
    const used = [...disks.values()].map((disk) => disk.uid);
    const left: LeftOver | null =
      identity === undefined ? null : { ...identity, isGroup: isolation === "none", disks: used };
    await writeFile(paths.processRecord(uid, container.name), JSON.stringify(left), { mode: 0o600 });
    group = await kit.groups.make(`${uid}_${container.name}`, container.limits);
    await group?.join(initPid);
  };
  const afterEnd = async () => {
    const ended = group;
    group = undefined;
    const ranOutOfMemory = (await ended?.ranOutOfMemory()) ?? false;
    await ended?.remove();
    return { ranOutOfMemory };
  };
  const prepareFolder = async () => {
    await mkdir(join(paths.containers(uid), container.name), { recursive: true, mode: 0o700 });
  };
  const common: Common = { uid, sourceOf, prepareFolder, beforeStart, afterEnd };

  if (isolation === "none") return plainLaunch(kit, container, call, common);

  const table = mountTable(paths.root, [
    ...kit.mounts,
    ...container.mounts.map((mount): MountLine => {
      const volume = plan.volumes.find((other) => other.name === mount.volume);
      const readOnly = mount.readOnly || (volume?.t === "claim" && volume.readOnly);
      const options = ["bind", ...(readOnly ? ["ro"] : []), "nosuid", "nodev", makeMountPoint];
      return { source: sourceOf(mount.volume), path: mount.path, type: "none", options };
    }),
  ]);
  const env = numberedEnv(call, container.workingDir);
  const [file = "", ...enter] = enterNewNamespaces(isolation);
  const setup = ["/bin/sh", join(scriptsDirectory, "pod-setup.sh")];
  const init = [...dropRights(isolation), "/bin/sh", `${inPod.scripts}/pod-init.sh`];
  const exec = ["/bin/sh", `${inPod.scripts}/pod-exec.sh`];
  return {
    async launchPlan(output) {
      await prepareFolder();
      const tablePath = paths.mountTable(uid, container.name);
      await writeFile(tablePath, table, { mode: 0o600 });
      const places = [paths.root, paths.skeleton, tablePath, pod.metadata.name];
      const args = [...enter, ...setup, ...places, ...init, ...exec, ...call.command];
      return { file, args, env, endSurvivors: undefined, output, beforeStart };
    },
    afterEnd,
    inside(command, running) {
      const [tool = "", ...args] = [...enterPod(isolation, running), ...dropRights(isolation), ...exec, ...command];
      return { file: tool, args, env };
    },
  };
}

interface Common {
  readonly uid: string;
  readonly sourceOf: (volume: string) => string;
  readonly prepareFolder: () => Promise<void>;
  readonly beforeStart: LaunchPlan["beforeStart"];
  readonly afterEnd: ContainerLaunch["afterEnd"];
}

/**
 * Without namespaces the pod sees the host's own paths, so every place of the pod that its command or variables name is
 * replaced by the folder that stands for it.
 */
function plainLaunch(kit: LaunchKit, plan: ContainerPlan, call: ContainerCall, common: Common): ContainerLaunch {
  const { uid, sourceOf, prepareFolder, beforeStart, afterEnd } = common;
  const mark = `${uid}/${plan.name}`;
  const home = kit.paths.home(uid, plan.name);
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
  env.set(podMark, mark);
  const numbered = numberedEnv({ env, command }, onHost(plan.workingDir));
  const rights = kit.plainRights;
  const exec = ["/bin/sh", join(scriptsDirectory, "pod-exec.sh")];
  return {
    async launchPlan(output) {
      await prepareFolder();
      await mkdir(home, { recursive: true, mode: 0o700 });
      const init = ["/bin/sh", join(scriptsDirectory, "pod-init.sh")];
      const [file = "", ...args] = [...rights, ...init, ...rights, ...exec, ...command];
      const endSurvivors = async () => void (await endMarkedProcesses(mark, new AbortController().signal));
      return { file, args, env: numbered, endSurvivors, output, beforeStart };
    },
    afterEnd,
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
