import { readdir } from "node:fs/promises";
import type { Logger } from "pino";
import { untilAborted } from "./follow.ts";
import { endLeftOver, type ProcessTools, readLeftOvers } from "./left-over.ts";
import type { NodePaths } from "./node-paths.ts";
import type { VolumeStore } from "./volume-store.ts";

const patienceMs = 1_000;

/**
 * What pods of the node's earlier life left running. Their processes are ended, their disks are nobody else's until they
 * are gone, and no pod runs again before its own are: two trees never share a disk.
 */
export class LeftOvers {
  /** By pod, of those that may still run something. Resolves with true when nothing is left, with false when the node stops first. */
  readonly #ending = new Map<string, Promise<boolean>>();

  /** Finds them by the records of the data directory and begins to end them; `signal` gives up the waiting. */
  static async find(
    { paths, volumes, log }: { paths: NodePaths; volumes: VolumeStore; log: Logger },
    signal: AbortSignal,
    processes?: ProcessTools,
  ): Promise<LeftOvers> {
    const found = new LeftOvers();
    for (const podUid of await readdir(paths.pods)) {
      const lefts = await readLeftOvers(paths, podUid);
      if (lefts.length === 0) continue;
      const release = volumes.occupy(lefts.flatMap((left) => left.disks));
      const how = { patienceMs, signal, log: log.child({ uid: podUid }) };
      const ended = Promise.all(lefts.map((left) => endLeftOver(left, podUid, how, processes)));
      const isGone = ended.then(
        (gone) => gone.every(Boolean),
        async (error: unknown) => {
          how.log.error(
            { err: error },
            "whether a pod of the node's earlier life has ended is not known; it counts as running",
          );
          await untilAborted(signal);
          return false;
        },
      );
      const done = isGone.then((gone) => {
        if (!gone) return false;
        release();
        found.#ending.delete(podUid);
        return true;
      });
      found.#ending.set(podUid, done);
    }
    return found;
  }

  /** Tells whether something of the pod may still run. */
  has(podUid: string): boolean {
    return this.#ending.has(podUid);
  }

  /** Resolves with true when nothing of the pod is left, with false when the node stops first. */
  async gone(podUid: string): Promise<boolean> {
    return (await this.#ending.get(podUid)) ?? true;
  }
}
