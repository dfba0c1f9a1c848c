import { mkdir } from "node:fs/promises";
import { EpochFile } from "./epoch-file.ts";
import { Fence } from "./fence.ts";

/** The fence at the epoch that a former agent process left. Throws when that cannot be read. */
export async function openFence(stateDirectory: string): Promise<Fence> {
  await mkdir(stateDirectory, { recursive: true, mode: 0o700 });
  const file = new EpochFile(stateDirectory);
  return new Fence(await file.read(), file);
}
