import { readdir, readFile } from "node:fs/promises";
import { identifyProcess, stillRuns } from "./process-identity.ts";

/** The variable by which a pod's processes are known where no namespace holds them together. */
export const podMark = "HOLDFAST_POD";

const lookAgainMs = 10;
const lookAgainMaxMs = 1_000;

/**
 * Kills every process that carries the pod's mark, wherever it went, and resolves when a look at all processes finds none.
 * One that cleared its environment is not found.
 */
export async function endMarkedProcesses(podUid: string): Promise<void> {
  for (let pauseMs = lookAgainMs; await killMarked(podUid); pauseMs = Math.min(lookAgainMaxMs, pauseMs * 2))
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
}

/** False when there was none. */
async function killMarked(podUid: string): Promise<boolean> {
  let found = false;
  for (const name of await readdir("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid <= 1 || pid === process.pid) continue;
    const seen = await identifyProcess(pid);
    if (seen === undefined || !(await isMarked(pid, podUid))) continue;
    found = true;
    if (await stillRuns(seen)) killIfThere(pid); // the number is not somebody else's by now
  }
  return found;
}

async function isMarked(pid: number, podUid: string): Promise<boolean> {
  const environment = await readFile(`/proc/${pid}/environ`, "latin1").catch(() => ""); // gone, or another user's
  return `\0${environment}`.includes(`\0${podMark}=${podUid}\0`);
}

/** SIGKILL to a process, or with a negative number to a group; it may be gone already. */
export function killIfThere(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}
