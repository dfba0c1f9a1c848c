import { join } from "node:path";

/** The control group of memory that this process is in, as far as /proc tells. */
export interface MemoryGroup {
  readonly version: 1 | 2;
  readonly folder: string;
}

/**
 * The group at the top of what this process sees, where it is in that one; from /proc/self/cgroup and /proc/self/mountinfo. A container
 * sees its own there, with a namespace of control groups (the path is "/") or without (its mount shows only its own). Undefined anywhere
 * else: a group below may be a part of a container, and beside it nobody knows whose it is.
 */
export function memoryGroupOf(ownGroups: string, mountInfo: string): MemoryGroup | undefined {
  const groups = ownGroups.split("\n").flatMap((line) => {
    const [, controllers, path] = /^\d+:([^:]*):(.+)$/.exec(line) ?? [];
    return controllers === undefined || path === undefined ? [] : [{ controllers: controllers.split(","), path }];
  });
  // In a hybrid of both versions memory belongs to version 1.
  const first = groups.find(({ controllers }) => controllers.includes("memory"));
  const second = groups.find(({ controllers }) => controllers[0] === "");
  const own = first ?? second;
  if (!own) return undefined;
  const version = first ? 1 : 2;
  for (const line of mountInfo.split("\n")) {
    const [before = "", after = ""] = line.split(" - ");
    const [, , , root, mountPoint] = before.split(" ");
    const [type, , options = ""] = after.split(" ");
    const isIts = version === 2 ? type === "cgroup2" : type === "cgroup" && options.split(",").includes("memory");
    if (isIts && mountPoint !== undefined && root === own.path) return { version, folder: unescaped(mountPoint) };
  }
  return undefined;
}

/** The files of a group, by what they tell. */
export function memoryFilesOf({ version, folder }: MemoryGroup) {
  const [used, limit] =
    version === 2 ? ["memory.current", "memory.max"] : ["memory.usage_in_bytes", "memory.limit_in_bytes"];
  return {
    used: join(folder, used),
    limit: join(folder, limit),
    details: join(folder, "memory.stat"),
    members: join(folder, "cgroup.procs"),
  };
}

/** mountinfo writes blanks and backslashes as octal numbers. */
function unescaped(path: string): string {
  return path.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}
