import { spawn } from "node:child_process";
import { AnsweredError } from "@holdfast/guest-link";

const probeTimeoutMs = 5_000;
const statusMaxBytes = 64 * 1024;

/**
 * The /proc/self/status of a process that is started as commands are. What it says is judged by the control plane. Its pid is among
 * `helpers` while it runs: a quiesce must not make the guest look privileged.
 */
export function readOwnStatus(environment: Readonly<Record<string, string>>, helpers: Set<number>): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn("cat", ["/proc/self/status"], {
      cwd: "/",
      env: environment,
      detached: true,
      stdio: ["ignore", "pipe", "ignore"],
      timeout: probeTimeoutMs,
      killSignal: "SIGKILL",
    });
    const { pid } = child;
    if (pid !== undefined) {
      helpers.add(pid);
      child.once("exit", () => helpers.delete(pid));
    }
    const chunks: Buffer[] = [];
    let bytes = 0;
    child.stdout.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= statusMaxBytes) chunks.push(chunk);
    });
    child.on("error", (error) => reject(probeFailed(error.message)));
    child.on("close", (code, signal) => {
      if (code === 0) resolve(Buffer.concat(chunks).toString("latin1"));
      else reject(probeFailed(`cat ended with ${signal ?? code}`));
    });
  });
}

function probeFailed(why: string): AnsweredError {
  return new AnsweredError(
    "GUEST_PRIVILEGED",
    `The guest could not show its privileges (${why}), so they count as too many.`,
    {
      cause: why,
    },
  );
}
