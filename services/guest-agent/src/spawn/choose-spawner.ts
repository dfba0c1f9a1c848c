import { loadKoffi } from "../libc/koffi.ts";
import { NodeSpawner } from "./node-spawner.ts";
import { PosixSpawner } from "./posix-spawner.ts";
import type { Spawner } from "./spawner.ts";

/** By posix_spawn where the addon fits this machine and its C library has what is needed, else by Node. */
export function chooseSpawner(koffi = loadKoffi()): Spawner {
  if (koffi === undefined) return new NodeSpawner();
  try {
    return new PosixSpawner(koffi);
  } catch (error) {
    console.error("programs are started by fork; this C library has no complete posix_spawn:", error);
    return new NodeSpawner();
  }
}
