import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { HostCommands } from "./host.ts";

/** A node in a process of its own (host.ts). */
export class HostProcess {
  readonly #child: ChildProcess;
  readonly #calls = new Map<number, { resolve: (result: never) => void; reject: (error: Error) => void }>();
  #serial = 0;

  private constructor(child: ChildProcess) {
    this.#child = child;
    child.on("message", ([id, result, failure]: [number, never, string?]) => {
      const call = this.#calls.get(id);
      this.#calls.delete(id);
      if (failure === undefined) call?.resolve(result);
      else call?.reject(new Error(failure));
    });
    child.once("exit", () => {
      for (const call of this.#calls.values()) call.reject(new Error("the host ended"));
    });
  }

  /** Starts one over the directory, under `launcher` if given, and waits until its node runs. */
  static async start(dataDir: string, launcher: readonly string[] = []): Promise<HostProcess> {
    const [file = "", ...args] = [...launcher, process.execPath, join(import.meta.dirname, "host.ts"), dataDir];
    const child = spawn(file, args, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
    const [first] = await Promise.race([
      once(child, "message"),
      once(child, "exit").then(([code]) => [`the host exited with ${code}`]),
    ]);
    if (first !== "ready") throw new Error(String(first));
    return new HostProcess(child);
  }

  call<C extends keyof HostCommands>(
    command: C,
    ...[argument]: Parameters<HostCommands[C]>
  ): Promise<Awaited<ReturnType<HostCommands[C]>>> {
    const id = ++this.#serial;
    return new Promise((resolve, reject) => {
      this.#calls.set(id, { resolve, reject });
      this.#child.send([id, command, argument]);
    });
  }

  /** SIGKILL, and waits for the process's end. */
  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exit = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await exit;
  }
}
