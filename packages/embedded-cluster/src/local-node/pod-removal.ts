import { rm } from "node:fs/promises";
import type { Logger } from "pino";
import { isApiStatus } from "../api-status-error.ts";
import type { KubeObject, ResourceApi } from "../resource-api.ts";
import { sleep } from "./follow.ts";
import type { NodePaths } from "./node-paths.ts";
import { pods, refOf } from "./resources.ts";

const deleteRetryMs = 1_000;

/** Removes what the node has of a pod besides its disks. What cannot be removed is said in the log. */
export async function removePodFolders(paths: NodePaths, uid: string, log: Logger): Promise<void> {
  for (const path of [paths.pod(uid), paths.podLogs(uid)])
    await rm(path, { recursive: true, force: true }).catch((error: unknown) =>
      log.error({ err: error, path }, "what a pod left behind could not be removed"),
    );
}

/** Confirms a pod's deletion: tries until its object is gone, or the signal aborts. */
export async function deletePodObject(
  api: ResourceApi,
  pod: KubeObject,
  signal: AbortSignal,
  log: Logger,
): Promise<void> {
  const wish = { gracePeriodSeconds: 0, preconditions: { uid: pod.metadata.uid ?? "" } };
  while (!signal.aborted) {
    try {
      await api.delete(refOf(pods, pod), wish);
      return;
    } catch (error) {
      if (isApiStatus(error, 404) || isApiStatus(error, 409)) return; // gone, or another pod by that name
      log.warn({ err: error }, "the pod's object was not deleted; trying again");
      await sleep(deleteRetryMs, signal);
    }
  }
}
