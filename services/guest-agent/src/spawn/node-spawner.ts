import { type ChildProcess, spawn } from "node:child_process";
import { closeSync } from "node:fs";
import { inChild, openDirectory } from "./directory-handle.ts";
import { retiring } from "./not-started.ts";
import { endBeforeAgent } from "./oom-score.ts";
import type { Program, ProgramStart, Spawner } from "./spawner.ts";

/** Starts programs by Node, where there is no addon for this machine's C library. It forks: the larger the agent, the longer it stands still. */
export class NodeSpawner implements Spawner {
  #retired = false;

  async spawn({ command, args, cwd, env, stdio, name }: ProgramStart, admit?: () => void): Promise<Program> {
    admit?.();
    if (this.#retired) throw retiring();
    if ("terminal" in stdio) throw new Error("without the addon nothing is started on a terminal");
    const directory = openDirectory(cwd);
    let child: ChildProcess;
    try {
      child = spawn(command, [...args], {
        cwd: inChild(directory),
        env: { ...env },
        ...(name === undefined ? {} : { argv0: name }),
        detached: true, // setsid: the leader's pid names its session and its group.
        stdio: stdio.map((fd) => fd ?? "ignore"),
      });
    } finally {
      closeSync(directory); // The child has entered it by now, or never will.
    }
    const { pid } = child;
    if (pid === undefined) return await new Promise<never>((_, reject) => child.once("error", reject));
    endBeforeAgent(pid);
    child.on("error", () => undefined); // Only failed kill() calls come here after the start, and none is made.
    return {
      pid,
      exited: new Promise((resolve) =>
        child.once("exit", (code, signal) => resolve(signal === null ? { code: code ?? 255 } : { signal })),
      ),
    };
  }
  /** Begins nothing any more: what was let in before may have been waiting for its directory or its pipes. */
  retire(): void {
    this.#retired = true;
  }
}
