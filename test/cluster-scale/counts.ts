import { createHash } from "node:crypto";
import { readdir, readFile, readlink } from "node:fs/promises";
import { join } from "node:path";

/** Everything that a process started and that lives, by the kernel's list of children. */
export async function descendantsOf(pid: number): Promise<number[]> {
  const found: number[] = [];
  for (const thread of await readdir(`/proc/${pid}/task`).catch(() => [])) {
    const children = await readFile(`/proc/${pid}/task/${thread}/children`, "utf8").catch(() => ""); // gone meanwhile
    for (const child of children.split(" ").filter(Boolean).map(Number))
      found.push(child, ...(await descendantsOf(child)));
  }
  return found;
}

/** The descriptors that a process has open, counted by what they are. */
export async function descriptorsOf(pid: number): Promise<Readonly<Record<string, number>>> {
  const counts: Record<string, number> = {};
  for (const descriptor of await readdir(`/proc/${pid}/fd`)) {
    const link = await readlink(`/proc/${pid}/fd/${descriptor}`).catch(() => undefined); // closed meanwhile
    const what = link?.replace(/:\[\d+\]$/, "");
    if (what !== undefined) counts[what] = (counts[what] ?? 0) + 1;
  }
  return counts;
}

/** What is mounted, as the process sees it. */
export function mountsOf(pid: number): Promise<string> {
  return readFile(`/proc/${pid}/mountinfo`, "utf8");
}

/** Memory of processes in MiB, shared pages counted in parts. */
export async function memoryOf(pids: readonly number[]): Promise<number> {
  let kib = 0;
  for (const pid of pids) {
    const text = await readFile(`/proc/${pid}/smaps_rollup`, "utf8").catch(() => ""); // gone meanwhile
    kib += Number(/^Pss:\s+(\d+)/m.exec(text)?.[1] ?? 0);
  }
  return kib / 1024;
}

/** The most memory that a process ever had, in MiB. */
export async function peakOf(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(/VmHWM:\s+(\d+)/.exec(text)?.[1]) / 1024;
}

/** What lies in the folders of the node, by folder. */
export async function nodeFolders(dataDir: string): Promise<Readonly<Record<string, number>>> {
  const counts: Record<string, number> = {};
  for (const folder of ["pods", "logs", "volumes", "trash"])
    counts[folder] = (await readdir(join(dataDir, folder))).length;
  return counts;
}

/** The control groups that the node of this data directory made for containers: their names begin with its hash. */
export async function controlGroups(dataDir: string): Promise<string[]> {
  const prefix = `holdfast-${createHash("sha256").update(dataDir).digest("hex").slice(0, 16)}-`;
  const found: string[] = [];
  const look = async (folder: string, depth: number): Promise<void> => {
    for (const entry of await readdir(folder, { withFileTypes: true }).catch(() => [])) {
      if (!entry.isDirectory()) continue;
      if (entry.name.startsWith(prefix)) found.push(join(folder, entry.name));
      else if (depth > 0) await look(join(folder, entry.name), depth - 1);
    }
  };
  await look("/sys/fs/cgroup", 3);
  return found;
}
