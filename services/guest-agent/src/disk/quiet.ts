import { orAborted } from "@holdfast/async";
import { AnsweredError } from "@holdfast/guest-link";

/**
 * Whether something may start in the guest (G24, G26). Every start runs through here: closing waits for those that were let in, so
 * that what scans afterwards has seen all that there is.
 */
export class Quiet {
  /** Reasons to stay closed that stand at the moment. Each is removed by whoever added it. */
  readonly #closed = new Set<symbol>();
  #starting = 0;
  /** Wakes those who wait until nothing is being started. */
  #idle: PromiseWithResolvers<void> | undefined;
  #retired = false;

  /** Nothing new starts at the moment, or ever again. */
  get isQuiet(): boolean {
    return this.#retired || this.#closed.size > 0;
  }

  get isRetired(): boolean {
    return this.#retired;
  }

  /** Runs what starts something. Rejects with AGENT_RETIRING while the guest is quiet; nothing ran then. */
  async start<T>(run: () => Promise<T>): Promise<T> {
    if (this.isQuiet) throw this.#refusal();
    this.#starting += 1;
    try {
      return await run();
    } finally {
      this.#starting -= 1;
      if (this.#starting === 0) {
        this.#idle?.resolve();
        this.#idle = undefined;
      }
    }
  }

  /**
   * Closes, and resolves once nothing is being started: with how to open again, of which the second call does nothing. Rejects as the
   * signal, and is open then.
   */
  async close(signal: AbortSignal): Promise<() => void> {
    const reason = Symbol("quiet");
    this.#closed.add(reason);
    const reopen = (): void => {
      this.#closed.delete(reason);
    };
    try {
      if (this.#starting > 0) await orAborted(this.#noneStarting(), signal);
      signal.throwIfAborted();
    } catch (error) {
      reopen();
      throw error;
    }
    return reopen;
  }

  /** Nothing starts any more: the agent is about to go. Resolves once nothing is being started. */
  retire(): Promise<void> {
    this.#retired = true;
    return this.#noneStarting();
  }

  async #noneStarting(): Promise<void> {
    if (this.#starting === 0) return;
    this.#idle ??= Promise.withResolvers();
    await this.#idle.promise;
  }

  #refusal(): AnsweredError {
    if (this.#retired) {
      return new AnsweredError("AGENT_RETIRING", "Nothing was started: the guest has been asked to stop.");
    }
    return new AnsweredError(
      "AGENT_RETIRING",
      "Nothing was started: the guest is being brought to rest, or is held quiet. Files can still be read and written. " +
        "Try again once the quiesce is released.",
      { cause: "quiesce" },
    );
  }
}
