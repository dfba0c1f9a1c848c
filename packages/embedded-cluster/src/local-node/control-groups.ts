import { createHash } from "node:crypto";
import { access, constants, mkdir, readdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { LimitsPlan } from "./quantity.ts";

/** Which limits the kernel enforces for this node. */
export interface EnforcedLimits {
  readonly memory: boolean;
  readonly cpu: boolean;
}

/** The control group of one run of a container. */
export interface ContainerGroup {
  /** Puts a process into it; its children are born there. */
  join(pid: number): Promise<void>;
  /** Tells whether the kernel killed something in it for want of memory. */
  ranOutOfMemory(): Promise<boolean>;
  /** Takes it away. Everything in it must have ended. */
  remove(): Promise<void>;
}

/** One hierarchy of control groups, and the folder in it in which groups are made. */
interface Hierarchy {
  readonly version: 1 | 2;
  readonly controls: EnforcedLimits;
  readonly folder: string;
}

const cpuPeriodUs = 100_000;
/** A dead process may be counted for a moment yet. */
const removalAttempts = 50;
const removalPauseMs = 20;

/** The node's control groups: where the kernel lets it have some, they enforce the limits of its containers. */
export class ControlGroups {
  readonly #hierarchies: readonly Hierarchy[];
  readonly #prefix: string;

  private constructor(hierarchies: readonly Hierarchy[], prefix: string) {
    this.#hierarchies = hierarchies;
    this.#prefix = prefix;
  }

  /** Finds what this process may use, and removes what an earlier node over the same data directory left there. */
  static async open(dataDir: string): Promise<ControlGroups> {
    const prefix = `holdfast-${createHash("sha256").update(dataDir).digest("hex").slice(0, 16)}-`;
    const [mounts, own] = await Promise.all([
      readFile("/proc/self/mountinfo", "utf8").catch(() => ""), // no /proc: no control groups either
      readFile("/proc/self/cgroup", "utf8").catch(() => ""),
    ]);
    const hierarchies: Hierarchy[] = [];
    for (const candidate of findHierarchies(mounts, own)) {
      const controls = await tryOut(candidate, prefix).catch(() => undefined); // refused: not enforced
      if (controls?.memory || controls?.cpu) hierarchies.push({ ...candidate, controls });
    }
    return new ControlGroups(hierarchies, prefix);
  }

  get enforced(): EnforcedLimits {
    return {
      memory: this.#hierarchies.some((hierarchy) => hierarchy.controls.memory),
      cpu: this.#hierarchies.some((hierarchy) => hierarchy.controls.cpu),
    };
  }

  /** Makes the group of one run. Undefined where no limit is asked for that the kernel would enforce. */
  async make(id: string, limits: LimitsPlan): Promise<ContainerGroup | undefined> {
    const used = this.#hierarchies.filter(
      ({ controls }) =>
        (controls.memory && limits.memoryBytes !== undefined) || (controls.cpu && limits.cpus !== undefined),
    );
    if (used.length === 0) return undefined;
    const folders: { readonly hierarchy: Hierarchy; readonly folder: string }[] = [];
    const remove = async () => {
      for (const { folder } of folders) await removeGroup(folder);
    };
    try {
      for (const hierarchy of used) {
        const folder = join(hierarchy.folder, this.#prefix + id);
        await removeGroup(folder); // an earlier run's, whose counters are not ours
        await mkdir(folder);
        folders.push({ hierarchy, folder });
        await writeLimits(hierarchy, folder, limits);
      }
    } catch (error) {
      await remove();
      throw error;
    }
    return {
      async join(pid) {
        for (const { folder } of folders) await writeFile(join(folder, "cgroup.procs"), String(pid));
      },
      async ranOutOfMemory() {
        for (const { hierarchy, folder } of folders) {
          const file = hierarchy.version === 2 ? "memory.events" : "memory.oom_control";
          const text = hierarchy.controls.memory ? await readFile(join(folder, file), "utf8") : "";
          if (Number(/^oom_kill (\d+)$/m.exec(text)?.[1] ?? 0) > 0) return true;
        }
        return false;
      },
      remove,
    };
  }
}

async function writeLimits({ version, controls }: Hierarchy, folder: string, limits: LimitsPlan): Promise<void> {
  const write = (file: string, value: number | string) => writeFile(join(folder, file), String(value));
  if (controls.memory && limits.memoryBytes !== undefined) {
    if (version === 2) {
      await write("memory.max", limits.memoryBytes);
      await write("memory.oom.group", 1); // as a kubelet: a container dies whole
      await write("memory.swap.max", 0).catch(ignoreAbsent);
    } else {
      await write("memory.limit_in_bytes", limits.memoryBytes);
      await write("memory.memsw.limit_in_bytes", limits.memoryBytes).catch(ignoreAbsent);
    }
  }
  if (controls.cpu && limits.cpus !== undefined) {
    const quotaUs = Math.max(1_000, Math.round(limits.cpus * cpuPeriodUs));
    if (version === 2) await write("cpu.max", `${quotaUs} ${cpuPeriodUs}`);
    else {
      await write("cpu.cfs_period_us", cpuPeriodUs);
      await write("cpu.cfs_quota_us", quotaUs);
    }
  }
}

/** A kernel that does not count swap has no such file. */
function ignoreAbsent(error: unknown): void {
  if (!(error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "EACCES"))) throw error;
}

/**
 * Where groups of our own may be made. In version 1 below our own group, once per controller. In version 2 a group that
 * has processes cannot limit its children, so ours go beside our own group, or into the root if we are there.
 */
export function findHierarchies(mountInfo: string, ownGroups: string): readonly Omit<Hierarchy, "controls">[] {
  const groups = new Map(
    ownGroups
      .split("\n")
      .map((line) => /^\d+:([^:]*):(.*)$/.exec(line))
      .flatMap((match) => (match === null ? [] : [[match[1] ?? "", match[2] ?? "/"] as const])),
  );
  const found: Omit<Hierarchy, "controls">[] = [];
  for (const line of mountInfo.split("\n")) {
    const [before = "", after = ""] = line.split(" - ");
    const [, , , root = "/", mountPoint = ""] = before.split(" ");
    const [type, , options = ""] = after.split(" ");
    const below = (group: string) =>
      join(mountPoint, group.startsWith(`${root}/`) ? group.slice(root.length) : group === root ? "" : group).replace(
        /\/$/,
        "",
      );
    if (type === "cgroup2") {
      const own = groups.get("") ?? "/";
      found.push({ version: 2, folder: below(dirname(own)) });
    } else if (type === "cgroup") {
      const controllers = options.split(",").filter((option) => option === "memory" || option === "cpu");
      const named = [...groups].find(([names]) => controllers.some((name) => names.split(",").includes(name)));
      if (named !== undefined) found.push({ version: 1, folder: below(named[1]) });
    }
  }
  return found;
}

/** Tells what can be limited there, by a group that is made and taken away. Throws where that is not allowed. */
async function tryOut({ version, folder }: Omit<Hierarchy, "controls">, prefix: string): Promise<EnforcedLimits> {
  for (const name of await readdir(folder)) if (name.startsWith(prefix)) await removeGroup(join(folder, name));
  if (version === 2) await writeFile(join(folder, "cgroup.subtree_control"), "+memory +cpu").catch(() => undefined); // told below
  const trial = join(folder, `${prefix}trial`);
  await mkdir(trial);
  const has = (file: string) =>
    access(join(trial, file), constants.W_OK).then(
      () => true,
      () => false,
    );
  const controls =
    version === 2
      ? { memory: await has("memory.max"), cpu: await has("cpu.max") }
      : { memory: await has("memory.limit_in_bytes"), cpu: await has("cpu.cfs_quota_us") };
  await removeGroup(trial);
  return controls;
}

async function removeGroup(folder: string): Promise<void> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await rmdir(folder);
    } catch (error) {
      const code = error instanceof Error && "code" in error ? error.code : undefined;
      if (code === "ENOENT") return;
      if (code !== "EBUSY" || attempt >= removalAttempts) throw error;
      await new Promise((resolve) => setTimeout(resolve, removalPauseMs));
    }
  }
}
