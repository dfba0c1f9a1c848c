import { readFile } from "node:fs/promises";
import type { Descriptor } from "./descriptor.ts";

/** The kernel's number of the mount that a descriptor is on. Two mounts of one file system differ, and nothing is renamed across. */
export async function mountIdOf(descriptor: Descriptor): Promise<string> {
  const text = await readFile(`/proc/self/fdinfo/${descriptor.fd}`, "latin1");
  return /^mnt_id:\s*(\d+)$/m.exec(text)?.[1] ?? "";
}

/** Where the mounts that this process sees are, by number. */
export async function mountPoints(): Promise<ReadonlyMap<string, string>> {
  const text = await readFile("/proc/self/mountinfo", "utf8");
  const points = new Map<string, string>();
  for (const line of text.split("\n")) {
    const [id, , , , point] = line.split(" ");
    if (id === undefined || point === undefined) continue;
    points.set(
      id,
      point.replace(/\\([0-7]{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8))),
    );
  }
  return points;
}
