import type { Logger } from "pino";
import { isOfAnother } from "../api-status-error.ts";
import type { KubeObject, ResourceApi } from "../resource-api.ts";
import { sleep } from "./follow.ts";
import { pods, refOf } from "./resources.ts";

const retryMs = 500;

/** Writes one pod's status: always the latest, one write at a time, until it is stored or the pod is gone. */
export class StatusWriter {
  readonly #api: ResourceApi;
  readonly #pod: KubeObject;
  readonly #signal: AbortSignal;
  readonly #log: Logger;
  #wanted: object | undefined;
  #writing: Promise<void> | undefined;

  /** Gives up, with what was not yet written, when the signal aborts. */
  constructor(api: ResourceApi, pod: KubeObject, signal: AbortSignal, log: Logger) {
    this.#api = api;
    this.#pod = pod;
    this.#signal = signal;
    this.#log = log;
  }

  /** Has this status written in place of any that waits. */
  write(status: object): void {
    this.#wanted = status;
    this.#writing ??= this.#run();
  }

  /** Resolves when the last status is stored or given up. */
  async flush(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
  }

  async #run(): Promise<void> {
    await Promise.resolve(); // so that #writing is set before it is cleared
    while (this.#wanted !== undefined && !this.#signal.aborted) {
      const status = this.#wanted;
      this.#wanted = undefined;
      // The uid keeps this status off another pod that has the name by now.
      const body = { metadata: { uid: this.#pod.metadata.uid }, status };
      try {
        await this.#api.patch(refOf(pods, this.#pod), "application/merge-patch+json", body, "status");
      } catch (error) {
        if (isOfAnother(error)) continue; // gone, or another pod by that name
        this.#log.warn({ err: error, pod: this.#pod.metadata.name }, "a pod's status was not stored; trying again");
        this.#wanted ??= status;
        await sleep(retryMs, this.#signal);
      }
    }
    this.#writing = undefined; // in the same step as the last look: a write() after it starts anew
  }
}
