import type { Logger } from "pino";
import type { NodeFaultPoints } from "../faults/node-faults.ts";
import type { KubeObject, ResourceApi } from "../resource-api.ts";
import { bindPod } from "./bind-pod.ts";
import type { RecordEvent } from "./event-recorder.ts";
import type { HeldVolume } from "./held-disks.ts";
import { recordOf, textOf } from "./json-shape.ts";
import { callAfter } from "./long-timer.ts";
import type { PodPlan } from "./pod-plan.ts";
import type { VolumeStore } from "./volume-store.ts";

/** What placing a pod stands on. */
export interface SchedulingTask {
  readonly pod: KubeObject;
  readonly plan: PodPlan;
  readonly nodeName: string;
  readonly api: ResourceApi;
  readonly volumes: VolumeStore;
  readonly faults: NodeFaultPoints;
  readonly log: Logger;
  readonly record: RecordEvent;
  /** Says why the pod is not on a node yet, on its status; undefined when it is. */
  readonly sayUnscheduled: (why: string | undefined) => void;
  /** Takes note of a disk, which is to be released whatever becomes of the pod. */
  readonly onHeld: (held: HeldVolume) => void;
}

/** A wait of this length is worth an event: claims and pods are made together, and one is always first. */
const worthSayingMs = 1_000;

/**
 * Waits for the pod's disks, which it holds, and binds the pod to this node. Answers the disks by volume; undefined when
 * the pod is to stop first, or is gone.
 */
export async function schedulePod(
  task: SchedulingTask,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, HeldVolume> | undefined> {
  const { pod, plan, nodeName, volumes } = task;
  const namespace = pod.metadata.namespace ?? "";
  const scheduled = textOf(recordOf(pod.spec).nodeName) !== undefined;
  const saying = new Saying(task, scheduled);
  try {
    if (!scheduled) await task.faults.beforeScheduling(pod, (why) => saying.unplaced(why), signal);
    const disks = new Map<string, HeldVolume>();
    for (const volume of plan.volumes) {
      if (volume.t !== "claim") continue;
      const wanted = { namespace, name: volume.claim, scheduled };
      const held = await volumes.hold(wanted, (why) => saying.withoutDisk(volume.name, why), signal);
      if (held === undefined) return undefined;
      task.onHeld(held);
      disks.set(volume.name, held);
    }
    if (signal.aborted) return undefined;
    if (!scheduled) {
      if (!(await bindPod(task, pod, signal))) return undefined; // deleted, or another pod by that name
      const message = `Successfully assigned ${namespace}/${pod.metadata.name} to ${nodeName}`;
      task.record(pod, "Normal", "Scheduled", message);
    }
    task.sayUnscheduled(undefined);
    return disks;
  } finally {
    saying.end();
  }
}

/** Says why a pod waits: as a scheduler for one without a node, as a kubelet for one that has one. */
class Saying {
  readonly #task: SchedulingTask;
  readonly #scheduled: boolean;
  #cancel: () => void = () => undefined;

  constructor(task: SchedulingTask, scheduled: boolean) {
    this.#task = task;
    this.#scheduled = scheduled;
  }

  unplaced(why: string): void {
    this.#task.sayUnscheduled(why);
    this.#tell("FailedScheduling", why);
  }

  withoutDisk(volume: string, why: string): void {
    if (this.#scheduled) this.#tell("FailedMount", `MountVolume.SetUp failed for volume "${volume}": ${why}`);
    else this.unplaced(`0/1 nodes are available: ${why}`);
  }

  #tell(reason: string, message: string): void {
    const { pod, record } = this.#task;
    this.#cancel();
    this.#cancel = callAfter(worthSayingMs, () => record(pod, "Warning", reason, message));
  }

  end(): void {
    this.#cancel();
  }
}
