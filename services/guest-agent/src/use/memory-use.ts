import { readFile, readlink } from "node:fs/promises";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { MemoryUseSchema } from "@holdfast/api/holdfast/guest/v1/agent_pb";
import { machinesPidNamespace, sharedPodMark } from "../disk/process-scope.ts";
import { type MemoryGroup, memoryFilesOf, memoryGroupOf } from "./memory-group.ts";

type MemoryUse = MessageInitShape<typeof MemoryUseSchema>;

/** Version 1 writes "no limit" as the greatest number of whole pages, of whatever size. */
const noLimitFrom = 2n ** 62n;

/** What the agent's container uses; undefined where its control group cannot be read, or may be somebody else's as well. */
export async function readMemoryUse(podUid: string, env = process.env): Promise<MemoryUse | undefined> {
  const [groups, mounts] = await Promise.all([textOf("/proc/self/cgroup"), textOf("/proc/self/mountinfo")]);
  const group = memoryGroupOf(groups ?? "", mounts ?? "", podUid);
  if (!group || (!group.isNamed && !(await isAlone(env)))) return undefined;
  return await useOf(group);
}

/** The agent is in a pid namespace that is not the machine's, nor the one of a node without namespaces, which marks its pods. */
async function isAlone(env: NodeJS.ProcessEnv): Promise<boolean> {
  if (env[sharedPodMark] !== undefined) return false;
  const pidNamespace = await readlink("/proc/self/ns/pid").catch(ignoreUnreadable);
  return pidNamespace !== undefined && pidNamespace !== machinesPidNamespace;
}

/** What the members of a group use; undefined where that cannot be read, or they may be others than this pod's. */
export async function useOf(group: MemoryGroup): Promise<MemoryUse | undefined> {
  const files = memoryFilesOf(group);
  const [used, limit, details, members] = await Promise.all([
    textOf(files.used),
    textOf(files.limit),
    textOf(files.details),
    textOf(files.members),
  ]);
  const usedBytes = numberIn(used);
  if (usedBytes === undefined) return undefined;
  if (!group.isNamed && (members === undefined || hasStrangers(members))) return undefined;
  const inactive = numberIn(
    new RegExp(`^${group.version === 2 ? "" : "total_"}inactive_file (\\d+)$`, "m").exec(details ?? "")?.[1],
  );
  const limitBytes = numberIn(limit); // "max" is none.
  return {
    usedBytes,
    // The two numbers are not of the same moment.
    ...(inactive !== undefined && { workingSetBytes: inactive > usedBytes ? 0n : usedBytes - inactive }),
    ...(limitBytes !== undefined && limitBytes < noLimitFrom && { limitBytes }),
  };
}

/** The kernel (version 2) writes 0 for a process that this pid namespace does not see. A list without anybody is not of a group that we are in. */
function hasStrangers(members: string): boolean {
  const pids = members.split("\n").filter((line) => line !== "");
  return pids.length === 0 || pids.includes("0");
}

function numberIn(text: string | undefined): bigint | undefined {
  const digits = text?.trim();
  return digits !== undefined && /^\d+$/.test(digits) ? BigInt(digits) : undefined;
}

async function textOf(path: string): Promise<string | undefined> {
  return await readFile(path, "utf8").catch(ignoreUnreadable);
}

/** What cannot be read is not known, whyever: that is the answer. */
function ignoreUnreadable(): undefined {
  return undefined;
}
