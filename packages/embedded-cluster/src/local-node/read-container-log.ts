import { readFile } from "node:fs/promises";
import { NodePaths } from "./node-paths.ts";

/** What the node keeps of a container's output, oldest first; undefined where there is none. The names are checked by whoever stored them. */
export async function readContainerLog(
  dataDir: string,
  podUid: string,
  container: string,
): Promise<Buffer | undefined> {
  const path = new NodePaths(dataDir).log(podUid, container);
  const parts = await Promise.all([`${path}.1`, path].map(read));
  return parts.every((part) => part === undefined) ? undefined : Buffer.concat(parts.flatMap((part) => part ?? []));
}

async function read(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}
