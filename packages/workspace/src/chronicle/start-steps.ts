import type { PodUid, SandboxUid } from "@holdfast/contract";
import { hasEnded } from "../binding/bindable.ts";
import type { StartStep } from "../events/workspace-event.ts";
import type { PodNews } from "../ports/cluster.ts";

/** A step with words for people. */
export interface SeenStep {
  readonly step: StartStep;
  readonly message: string;
}

const ranks: readonly StartStep[] = ["created", "scheduled", "image_pulling", "pod_running", "bound", "probed"];

/** Which steps of a start were told, so that each is told once for an object and for a pod. */
export class StartSteps {
  #created: SandboxUid | undefined;
  #pod: { readonly uid: PodUid; rank: number; message: string } | undefined;

  /** The object was made; undefined: that was told. */
  created(uid: SandboxUid | undefined): SeenStep | undefined {
    if (uid === undefined || this.#created === uid) return undefined;
    this.#created = uid;
    return { step: "created", message: "its object was created" };
  }

  /** What a pod shows now; undefined: nothing that was not told. */
  ofPod(pod: PodNews): SeenStep | undefined {
    const seen = stepOf(pod);
    if (!seen) return undefined;
    const rank = ranks.indexOf(seen.step);
    if (this.#pod?.uid !== pod.uid) this.#pod = { uid: pod.uid, rank: -1, message: "" };
    const isNews = rank > this.#pod.rank || (rank === this.#pod.rank && seen.message !== this.#pod.message);
    if (!isNews) return undefined;
    this.#pod.rank = rank;
    this.#pod.message = seen.message;
    return seen;
  }
}

function stepOf(pod: PodNews): SeenStep | undefined {
  if (pod.deleting || hasEnded(pod)) return undefined;
  if (pod.phase === "Running" && !pod.waits)
    return { step: "pod_running", message: pod.problem ?? "its container runs" };
  if (pod.node === undefined) return undefined;
  if (pod.waits) {
    return { step: "image_pulling", message: pod.problem ?? `node ${pod.node} makes its container ready: image, disk` };
  }
  return { step: "scheduled", message: pod.problem ?? `its pod is on node ${pod.node}` };
}
