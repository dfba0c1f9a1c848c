import { readdirSync, readFileSync } from "node:fs";

/** Pids of the processes whose environment names the text: every process of a pod carries its variables. */
export function processesWith(text: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, "utf8").includes(text);
      } catch {
        return false; // gone between two looks
      }
    });
}

/** Looks again, with the event loop in between, until it is so or the time is over. For what the kernel tells nobody. */
export async function eventually(isSo: () => boolean, withinMs: number): Promise<boolean> {
  const deadline = Date.now() + withinMs;
  while (!isSo()) {
    if (Date.now() > deadline) return false;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  return true;
}
