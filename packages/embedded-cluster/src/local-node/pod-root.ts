import { lstat, mkdir, readFile, readlink, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { podUser } from "./container-env.ts";
import { type Isolation, ownerInMounts } from "./isolation.ts";
import type { NodePaths } from "./node-paths.ts";

/** The agent's program: what the one image name stands for. */
export interface AgentProgram {
  readonly image: string;
  /** The node binary on the host. */
  readonly nodePath: string;
  /** The agent's folder on the host, bound read-only. */
  readonly directory: string;
  /** Its entry file, inside that folder. */
  readonly entry: string;
}

/** Where the agent's program is in every pod. */
export const inPod = {
  node: "/opt/holdfast/node",
  agent: "/opt/holdfast/agent",
  scripts: "/opt/holdfast/pod",
} as const;

/** The scripts that set a pod up, on the host. */
export const scriptsDirectory = join(import.meta.dirname, "scripts");

/** Folders of the host that a pod sees read-only, where they exist. */
const systemFolders = ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc", "nix"];

const devices = ["null", "zero", "full", "random", "urandom", "tty"];

/** How large /tmp, HOME and /dev/shm may grow; they live in memory and go with the container. */
const scratchSizes = { tmp: "1g", home: "1g", shm: "64m" };

/** Has mount(8) make the mount point. Only for folders that the skeleton has not. */
export const makeMountPoint = "X-mount.mkdir";

/** One line of a pod's mount table. */
export interface MountLine {
  readonly source: string;
  /** Inside the pod. */
  readonly path: string;
  readonly type: string;
  readonly options: readonly string[];
}

/** Makes the folders that every pod's root starts as: mount points, links and empty device files. Replaces older ones. */
export async function writeSkeleton(paths: NodePaths, agent: AgentProgram): Promise<void> {
  await rm(paths.skeleton, { recursive: true, force: true });
  const folders = [".host", "dev/pts", "dev/shm", "home/agent", "opt/holdfast", "proc", "run", "tmp", "var"];
  for (const folder of folders) await mkdir(join(paths.skeleton, folder), { recursive: true, mode: 0o755 });
  for (const device of devices) await writeFile(join(paths.skeleton, "dev", device), "");
  await writeFile(join(paths.skeleton, inPod.node), "");
  const resolver = await resolverFile();
  if (resolver !== undefined) {
    await mkdir(dirname(join(paths.skeleton, resolver)), { recursive: true, mode: 0o755 });
    await writeFile(join(paths.skeleton, resolver), "");
  }
  const links = [
    ["pts/ptmx", "dev/ptmx"],
    ["/proc/self/fd", "dev/fd"],
    ["/proc/self/fd/0", "dev/stdin"],
    ["/proc/self/fd/1", "dev/stdout"],
    ["/proc/self/fd/2", "dev/stderr"],
    ["../tmp", "var/tmp"],
    ["../run", "var/run"],
  ] as const;
  for (const [target, link] of links) await symlink(target, join(paths.skeleton, link));
  for (const folder of systemFolders) {
    const target = await readlink(`/${folder}`).catch(() => undefined); // not a link: bound, or absent
    if (target !== undefined) await symlink(target, join(paths.skeleton, folder));
  }
  await mkdir(paths.root, { recursive: true, mode: 0o700 });
  await writeFile(paths.passwd, await withEntry("/etc/passwd", passwdLine, podUser.uid));
  await writeFile(paths.group, await withEntry("/etc/group", groupLine, podUser.gid));
  await lstat(join(agent.directory, agent.entry)); // fails here, by name, rather than in every pod
  await lstat(agent.nodePath);
}

/** What /etc/resolv.conf is a link to, where that is in /run (systemd-resolved): pods have a /run of their own. */
async function resolverFile(): Promise<string | undefined> {
  const file = await realpath("/etc/resolv.conf").catch(() => undefined); // a host without one
  return file?.startsWith("/run/") ? file : undefined;
}

const passwdLine = `${podUser.name}:x:${podUser.uid}:${podUser.gid}::${podUser.home}:/bin/sh`;
const groupLine = `${podUser.name}:x:${podUser.gid}:`;

/** The host's table with our line in place of any that has the same name or number. */
async function withEntry(file: string, line: string, id: number): Promise<string> {
  const others = (await readFile(file, "utf8").catch(() => ""))
    .split("\n")
    .filter((other) => other !== "" && !other.startsWith(`${podUser.name}:`) && other.split(":")[2] !== String(id));
  return `${[...others, line].join("\n")}\n`;
}

/** The mounts that every pod has, before its volumes. */
export async function baseMounts(paths: NodePaths, agent: AgentProgram, isolation: Isolation): Promise<MountLine[]> {
  const owner = ownerInMounts(isolation);
  const readOnly = ["rbind", "ro", "nosuid", "nodev", makeMountPoint];
  const mounts: MountLine[] = [];
  for (const folder of systemFolders) {
    const stat = await lstat(`/${folder}`).catch(() => undefined); // absent on this host
    if (stat?.isDirectory()) mounts.push({ source: `/${folder}`, path: `/${folder}`, type: "none", options: readOnly });
  }
  const file = ["bind", "ro", "nosuid", "nodev"];
  const resolver = await resolverFile();
  if (resolver !== undefined) mounts.push({ source: resolver, path: resolver, type: "none", options: file });
  mounts.push(
    { source: paths.passwd, path: "/etc/passwd", type: "none", options: file },
    { source: paths.group, path: "/etc/group", type: "none", options: file },
    { source: "proc", path: "/proc", type: "proc", options: ["nosuid", "nodev", "noexec"] },
    { source: agent.nodePath, path: inPod.node, type: "none", options: file },
    { source: agent.directory, path: inPod.agent, type: "none", options: readOnly },
    { source: scriptsDirectory, path: inPod.scripts, type: "none", options: readOnly },
    { source: "devpts", path: "/dev/pts", type: "devpts", options: await ptyOptions(isolation) },
    tmpfs("/dev/shm", "1777", scratchSizes.shm, ["noexec"]),
    tmpfs("/tmp", "1777", scratchSizes.tmp, []),
    tmpfs(podUser.home, "0755", scratchSizes.home, [`uid=${owner.uid}`, `gid=${owner.gid}`]),
  );
  for (const device of devices)
    mounts.push({ source: `/dev/${device}`, path: `/dev/${device}`, type: "none", options: ["bind"] });
  return mounts;
}

function tmpfs(path: string, mode: string, size: string, more: readonly string[]): MountLine {
  return {
    source: "tmpfs",
    path,
    type: "tmpfs",
    options: [`mode=${mode}`, `size=${size}`, "nosuid", "nodev", ...more],
  };
}

async function ptyOptions(isolation: Isolation): Promise<string[]> {
  const options = ["newinstance", "ptmxmode=0666", "mode=0620", "nosuid", "noexec"];
  // Terminals belong to group tty where that group can be named; in a user namespace it is not mapped.
  const group = /^tty:[^:]*:(\d+):/m.exec(await readFile("/etc/group", "utf8").catch(() => ""));
  return isolation === "namespaces" && group?.[1] !== undefined ? [...options, `gid=${group[1]}`] : options;
}

/** The table in fstab(5) format, below the pod's root. */
export function mountTable(root: string, mounts: readonly MountLine[]): string {
  const octal = (text: string) =>
    text.replace(/[\s\\]/g, (char) => `\\${char.charCodeAt(0).toString(8).padStart(3, "0")}`);
  const lines = mounts.map((mount) =>
    [octal(mount.source), octal(root + mount.path), mount.type, mount.options.join(","), "0", "0"].join(" "),
  );
  return `${lines.join("\n")}\n`;
}
