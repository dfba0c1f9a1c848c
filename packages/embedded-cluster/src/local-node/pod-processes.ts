import { readdir, readFile } from "node:fs/promises";
import { sleep } from "./follow.ts";
import { identifyProcess, stillRuns } from "./process-identity.ts";

/** The variable by which a pod's processes are known where no namespace holds them together: `<pod uid>/<container>`. */
export const podMark = "HOLDFAST_POD";

const lookAgainMs = 10;
const lookAgainMaxMs = 1_000;

/**
 * Kills every process that carries the mark, of a pod or of one of its containers, wherever it went, and resolves with true when a look at all processes
 * finds none; with false when the signal aborts first. One that cleared its environment is not found.
 */
export async function endMarkedProcesses(mark: string, signal: AbortSignal): Promise<boolean> {
  for (let pauseMs = lookAgainMs; await killMarked(mark); pauseMs = Math.min(lookAgainMaxMs, pauseMs * 2)) {
    if (signal.aborted) return false;
    await sleep(pauseMs, signal);
  }
  return true;
}

/** False when there was none. */
async function killMarked(mark: string): Promise<boolean> {
  let found = false;
  for (const name of await readdir("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid <= 1 || pid === process.pid) continue;
    const seen = await identifyProcess(pid);
    if (seen === undefined || !(await isMarked(pid, mark))) continue;
    found = true;
    if (await stillRuns(seen)) killIfThere(pid); // the number is not somebody else's by now
  }
  return found;
}

async function isMarked(pid: number, mark: string): Promise<boolean> {
  const environment = await readFile(`/proc/${pid}/environ`, "latin1").catch(() => ""); // gone, or another user's
  const at = `\0${environment}`;
  return at.includes(`\0${podMark}=${mark}\0`) || at.includes(`\0${podMark}=${mark}/`);
}

/** SIGKILL to a process, or with a negative number to a group; it may be gone already. */
export function killIfThere(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}
