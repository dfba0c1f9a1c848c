import type { Logger } from "pino";
import { ApiStatusError, isApiStatus } from "../api-status-error.ts";
import type { KubeObject, ResourceApi } from "../resource-api.ts";
import { sleep } from "./follow.ts";
import { recordOf, textOf } from "./json-shape.ts";
import { pods, refOf } from "./resources.ts";

const retryMs = 500;

/**
 * Gives a pod to this node, asking until the server answers. False when the pod is gone, on its way out, another's by
 * now, or when the signal aborts first.
 */
export async function bindPod(
  { api, nodeName, log }: { readonly api: ResourceApi; readonly nodeName: string; readonly log: Logger },
  pod: KubeObject,
  signal: AbortSignal,
): Promise<boolean> {
  const ref = refOf(pods, pod);
  const { uid = "" } = pod.metadata;
  while (!signal.aborted) {
    try {
      await api.bind(ref, { uid, nodeName });
      return true;
    } catch (error) {
      if (isApiStatus(error, 404)) return false;
      // Deleted, another pod of the name, or bound already: perhaps by us, when the reply to the last try was lost.
      const isOurs = isApiStatus(error, 409) ? await isBound(api, pod, nodeName) : undefined;
      if (isOurs !== undefined) return isOurs;
      if (error instanceof ApiStatusError && error.code < 500 && error.code !== 409 && error.code !== 429) throw error;
      log.warn({ err: error }, "whether the pod was bound is not known; asking again");
      await sleep(retryMs, signal);
    }
  }
  return false;
}

/** Tells whether the pod is on this node; undefined when the server does not say. */
async function isBound(api: ResourceApi, pod: KubeObject, nodeName: string): Promise<boolean | undefined> {
  try {
    const present = await api.get(refOf(pods, pod));
    return present.metadata.uid === pod.metadata.uid && textOf(recordOf(present.spec).nodeName) === nodeName;
  } catch (error) {
    return isApiStatus(error, 404) ? false : undefined;
  }
}
