import { closeSync } from "node:fs";
import { Socket } from "node:net";
import { AnsweredError } from "@holdfast/guest-link";
import type { Pipe, Pipes } from "./spawn/pipes.ts";
import type { Program, Spawner } from "./spawn/spawner.ts";

const probeTimeoutMs = 5_000;
const statusMaxBytes = 64 * 1024;

/** What a probe starts its process with: what commands are started with. */
export interface ProbeNeeds {
  readonly spawner: Spawner;
  readonly pipes: Pipes;
  readonly environment: Readonly<Record<string, string>>;
  /** Has the process's pid while it runs: a quiesce must not make the guest look privileged. */
  readonly helpers: Set<number>;
}

/** The /proc/self/status of a process that is started as commands are. What it says is judged by the control plane. */
export async function readOwnStatus({ spawner, pipes, environment, helpers }: ProbeNeeds): Promise<string> {
  const [pipe] = await pipes.take(1).catch((error) => {
    throw probeFailed(error.message);
  });
  if (pipe === undefined) throw probeFailed("there was no pipe");
  const program = await started(spawner, pipe, environment);
  helpers.add(program.pid);
  const timer = setTimeout(() => process.kill(program.pid, "SIGKILL"), probeTimeoutMs);
  try {
    const text = textOf(pipe);
    const status = await program.exited;
    if (!("code" in status)) throw probeFailed(`cat ended with ${status.signal}`);
    if (status.code !== 0) throw probeFailed(`cat ended with ${status.code}`);
    return await text;
  } finally {
    clearTimeout(timer);
    helpers.delete(program.pid);
  }
}

async function started(spawner: Spawner, pipe: Pipe, env: Readonly<Record<string, string>>): Promise<Program> {
  try {
    const stdio = [undefined, pipe.writeFd, undefined] as const;
    return await spawner.spawn({ command: "cat", args: ["/proc/self/status"], cwd: "/", env, stdio });
  } catch (error) {
    closeSync(pipe.readFd);
    throw probeFailed(error instanceof Error ? error.message : String(error));
  } finally {
    closeSync(pipe.writeFd);
  }
}

/** Everything that is written, as far as it may matter. */
function textOf({ readFd }: Pipe): Promise<string> {
  const reader = new Socket({ fd: readFd, readable: true, writable: false });
  const chunks: Buffer[] = [];
  let bytes = 0;
  reader.on("data", (chunk) => {
    bytes += chunk.length;
    if (bytes <= statusMaxBytes) chunks.push(chunk);
  });
  reader.on("error", () => undefined); // Its close follows.
  return new Promise((resolve) => reader.once("close", () => resolve(Buffer.concat(chunks).toString("latin1"))));
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
