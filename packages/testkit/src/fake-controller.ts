import { podUidOf } from "@holdfast/contract";
import type { StoredPod, StoredSandbox } from "./fake-cluster-objects.ts";

/** What the cluster does by itself. Each may be switched off, and be done by hand. */
export interface Habits {
  /** The controller acts on every change. Off: only `observe()` makes it look. */
  controller: boolean;
  /** A new pod is ready, with an address, at once. */
  podsStart: boolean;
  /** A pod that carries a deletionTimestamp goes at once. */
  podsEnd: boolean;
}

let pods = 0;

/**
 * One look of the Sandbox controller, as the real one acts: level-triggered, one pod, none made beside a dying one, none made anew after
 * one that ended by itself.
 */
export function reconcile(sandbox: StoredSandbox, habits: Habits): void {
  if (sandbox.deleting) return;
  const [pod] = sandbox.pods;
  if (sandbox.mode === "Suspended" && pod) pod.deleting = true;
  if (sandbox.mode === "Running" && !pod) sandbox.pods.push(newPod(sandbox, habits));
  sandbox.observedGeneration = sandbox.generation;
  sandbox.resourceVersion = String(Number(sandbox.resourceVersion) + 1);
}

/** One look of the kubelet: dying pods go. */
export function endPods(sandbox: StoredSandbox): boolean {
  const before = sandbox.pods.length;
  sandbox.pods = sandbox.pods.filter((pod) => !pod.deleting);
  return sandbox.pods.length < before;
}

export function newPod(sandbox: StoredSandbox, habits: Habits): StoredPod {
  pods += 1;
  const started = habits.podsStart;
  return {
    name: sandbox.name,
    uid: podUidOf(`pod-${pods}`),
    resourceVersion: "1",
    ip: started ? `10.0.${pods >> 8}.${pods & 255}` : undefined,
    phase: started ? "Running" : "Pending",
    ready: started,
    deleting: false,
    gracePeriodSeconds: 30,
    node: started ? "node-1" : undefined,
    image: "holdfast/guest-agent:test",
    restartCount: 0,
    lastTermination: undefined,
    termination: undefined,
    problem: undefined,
  };
}
