import type { Logger } from "pino";
import { isApiStatus } from "../api-status-error.ts";
import type { KubeObject, ResourceApi, ResourceRef } from "../resource-api.ts";
import { callAfter } from "./long-timer.ts";

/** Told of one kind's objects. Calls come one at a time and in order; they must not throw. */
export interface Follower {
  /** Every object that exists, at the start and again whenever events may have been missed. */
  readonly onList: (items: readonly KubeObject[], resourceVersion: string) => Promise<void> | void;
  readonly onChange: (object: KubeObject) => void;
  readonly onGone: (object: KubeObject) => void;
}

const firstRetryMs = 100;
const maxRetryMs = 5_000;

/** Lists and watches one kind until the signal aborts. Resolves after that; failures are logged and tried again. */
export async function follow(
  api: ResourceApi,
  resource: ResourceRef,
  follower: Follower,
  signal: AbortSignal,
  log: Logger,
): Promise<void> {
  let retryMs = firstRetryMs;
  while (!signal.aborted) {
    try {
      const list = await api.list(resource);
      await follower.onList(list.items, list.resourceVersion);
      for await (const event of api.watch(resource, list.resourceVersion, signal)) {
        retryMs = firstRetryMs;
        if (event.type === "DELETED") follower.onGone(event.object);
        else if (event.type !== "BOOKMARK") follower.onChange(event.object);
      }
    } catch (error) {
      if (signal.aborted) return;
      if (!isApiStatus(error, 410)) log.warn({ err: error, resource: resource.plural }, "watch ended; listing again");
    }
    await sleep(retryMs, signal);
    retryMs = Math.min(maxRetryMs, retryMs * 2);
  }
}

/** Waits, or less when the signal aborts. Never rejects. */
export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const end = () => {
      stop();
      signal.removeEventListener("abort", end);
      resolve();
    };
    const stop = callAfter(ms, end);
    signal.addEventListener("abort", end, { once: true });
  });
}

/** Resolves when the signal aborts. */
export function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
