import { join, relative } from "node:path";

/** A control group of memory. */
export interface MemoryGroup {
  readonly version: 1 | 2;
  readonly folder: string;
  /** Its name proves that it is this pod's. Else it is this pod's only if nobody else is in it. */
  readonly isNamed: boolean;
}

/**
 * The group of memory of this process, from /proc/self/cgroup and /proc/self/mountinfo, where it can be the container's: it, or the one
 * around it, is named after the pod's uid, as a kubelet names them; or, in version 2, it is at the top of what this process sees, as a
 * container with a namespace of its own sees it. Undefined anywhere else: it may be a part of a container, or whose it is nobody knows.
 * Version 1 is believed by the name alone: it does not show members of other pid namespaces.
 */
export function memoryGroupOf(ownGroups: string, mountInfo: string, podUid: string): MemoryGroup | undefined {
  const groups = ownGroups.split("\n").flatMap((line) => {
    const [, controllers, path] = /^\d+:([^:]*):(.+)$/.exec(line) ?? [];
    return controllers === undefined || path === undefined ? [] : [{ controllers: controllers.split(","), path }];
  });
  // In a hybrid of both versions memory belongs to version 1.
  const first = groups.find(({ controllers }) => controllers.includes("memory"));
  const own = first ?? groups.find(({ controllers }) => controllers[0] === "");
  if (!own) return undefined;
  const version = first ? 1 : 2;
  const isNamed = isNamedAfter(own.path, podUid);
  for (const line of mountInfo.split("\n")) {
    const [before = "", after = ""] = line.split(" - ");
    const [, , , root, mountPoint] = before.split(" ");
    const [type, , options = ""] = after.split(" ");
    const isIts = version === 2 ? type === "cgroup2" : type === "cgroup" && options.split(",").includes("memory");
    if (!isIts || root === undefined || mountPoint === undefined) continue;
    const below = own.path === root ? "" : relative(root, own.path);
    if (below.startsWith("..")) continue;
    if (isNamed || (version === 2 && below === ""))
      return { version, folder: join(unescaped(mountPoint), below), isNamed };
  }
  return undefined;
}

/** Whether its last name, or the one before, has the uid in it; systemd's names have "_" where a uid has "-". */
function isNamedAfter(path: string, podUid: string): boolean {
  if (podUid.length < uidMinLength) return false;
  const names = path.split("/").slice(-2);
  return names.some((name) => name.includes(podUid) || name.includes(podUid.replaceAll("-", "_")));
}

/** What is shorter might be in a name by chance. */
const uidMinLength = 32;

/** The files of a group, by what they tell. */
export function memoryFilesOf({ version, folder }: Pick<MemoryGroup, "version" | "folder">) {
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
