import type { KubeObject } from "../resource-api.ts";
import type { ContainerPlan } from "./container-plan.ts";
import type { ContainerView } from "./container-view.ts";
import type { RecordEvent } from "./event-recorder.ts";
import { sleep } from "./follow.ts";
import { type BackoffSpan, nthDelayMs } from "./restart-backoff.ts";

/** Which images this node has. */
export interface ImageSource {
  /** Why the image cannot be had, undefined when it is there. Asked at each attempt. */
  errorOf(pod: KubeObject, image: string): string | undefined;
}

/** How long a failed attempt is shown as such before it is shown as waiting for the next. */
const failureShownMs = 1_000;

/** Waits until the container's image is there, trying again ever more rarely. False when the signal aborts first. */
export async function awaitImage(
  task: {
    readonly pod: KubeObject;
    readonly plan: ContainerPlan;
    readonly images: ImageSource;
    readonly backoff: BackoffSpan;
    readonly record: RecordEvent;
    readonly set: (change: Partial<ContainerView>) => void;
  },
  signal: AbortSignal,
): Promise<boolean> {
  const { pod, plan, images, backoff, record, set } = task;
  for (let attempt = 0; !signal.aborted; attempt += 1) {
    const why = images.errorOf(pod, plan.image);
    if (why === undefined) {
      record(pod, "Normal", "Pulled", `Container image "${plan.image}" already present on machine`);
      return true;
    }
    record(pod, "Warning", "Failed", `Failed to pull image "${plan.image}": ${why}`);
    set({ state: { waiting: { reason: "ErrImagePull", message: why } } });
    const delayMs = nthDelayMs(backoff, attempt);
    const shownMs = Math.min(failureShownMs, delayMs / 2);
    await sleep(shownMs, signal);
    if (signal.aborted) return false;
    const message = `Back-off pulling image "${plan.image}"`;
    record(pod, "Normal", "BackOff", message);
    set({ state: { waiting: { reason: "ImagePullBackOff", message: `${message}: ${why}` } } });
    await sleep(delayMs - shownMs, signal);
  }
  return false;
}
