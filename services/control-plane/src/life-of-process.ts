import { drainGraceMs } from "@holdfast/contract";
import type { ServiceLog } from "./logging.ts";

const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * A process from its start to its exit code: 0 after a signal, once everything is let go; 1 for a defect, or when letting go
 * took longer than `drainGraceMs`. A second signal changes nothing: Ctrl-C reaches the launcher and this process both.
 */
export class LifeOfProcess {
  readonly #log: ServiceLog;
  readonly #stopWanted = Promise.withResolvers<string>();

  constructor(log: ServiceLog) {
    this.#log = log;
  }

  /** Starts; resolves when a signal came and everything is let go. Rejects with what `start` rejects with. */
  async run(start: () => Promise<() => Promise<void>>): Promise<void> {
    for (const signal of signals) process.on(signal, () => this.#stopWanted.resolve(signal));
    process.on("uncaughtException", (error, origin) => this.#endByDefect(error, origin));
    // Whoever read our output may go away; that ends nothing.
    for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
    const stop = await start();
    const signal = await this.#stopWanted.promise;
    this.#log.logger.info({ signal }, "stopping");
    setTimeout(() => void this.#end(1, "did not stop in time"), drainGraceMs);
    await stop();
    await this.#end(0, "stopped");
  }

  #endByDefect(error: unknown, origin: string): void {
    this.#log.logger.fatal({ err: error, origin }, "a defect ended the process");
    void this.#exit(1);
  }

  async #end(code: 0 | 1, message: string): Promise<void> {
    if (code === 0) this.#log.logger.info(message);
    else this.#log.logger.error({ graceMs: drainGraceMs }, message);
    await this.#exit(code);
  }

  async #exit(code: 0 | 1): Promise<void> {
    await this.#log.close();
    process.exit(code);
  }
}
