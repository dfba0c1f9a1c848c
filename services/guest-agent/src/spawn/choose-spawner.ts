import { loadKoffi } from "../libc/koffi.ts";
import { NodeSpawner } from "./node-spawner.ts";
import { waitCallsOf } from "./posix-calls.ts";
import { PosixSpawner } from "./posix-spawner.ts";
import { Reaper } from "./reaper.ts";
import type { Spawner } from "./spawner.ts";
import { ThreadSpawner } from "./thread-spawner.ts";

/** How this agent starts programs. */
export interface Spawners {
  /** What people start. */
  readonly programs: Spawner;
  /** Something is being started, and the process cannot exit before the kernel has answered. */
  readonly isBusy: () => boolean;
  /** Has what waits for its turn refused, as whatever is asked for from here on. What is being started is not touched. */
  readonly retire: () => void;
  /** What the agent starts for itself: known by its pid in the very step in which it is made. */
  readonly helpers: Spawner;
  /** Programs can be given a terminal. */
  readonly givesTerminals: boolean;
}

/** By posix_spawn where the addon fits this machine and its C library has what is needed, else by Node. */
export function chooseSpawners(koffi = loadKoffi()): Spawners {
  if (koffi === undefined) return byNode();
  try {
    const reaper = new Reaper(waitCallsOf(koffi));
    const helpers = new PosixSpawner(koffi, reaper);
    const programs = new ThreadSpawner(reaper);
    return { programs, helpers, isBusy: () => programs.isBusy, retire: () => programs.retire(), givesTerminals: true };
  } catch (error) {
    console.error("programs are started by fork; there is no complete posix_spawn here:", error);
    return byNode();
  }
}

function byNode(): Spawners {
  const programs = new NodeSpawner();
  const retire = (): void => programs.retire();
  return { programs, helpers: new NodeSpawner(), isBusy: () => false, retire, givesTerminals: false };
}
