import type { KubeObject } from "../resource-api.ts";

/** Which pods are meant; an absent member means any. */
export interface PodMatch {
  readonly namespace?: string;
  readonly name?: string;
  readonly uid?: string;
}

/** One pod; `namespace` is "default" where absent. */
export interface PodPlace {
  readonly namespace?: string;
  readonly name: string;
}

/** Takes a fault back. A second call does nothing. */
export type Undo = () => void;

/**
 * The fault knobs of a node, for tests and for people who want to see what happens. Each rule lasts until it is undone;
 * the three actions happen once. What a knob does is what a real node does by itself: nothing here is a short cut.
 */
export interface NodeFaults extends NodeFaultActions {
  /** No node takes these pods: they stay Pending, PodScheduled False (Unschedulable), with a FailedScheduling event. */
  holdScheduling(match?: PodMatch, message?: string): Undo;
  /** These pods are bound, and their containers are created so much later. */
  delayStart(ms: number, match?: PodMatch): Undo;
  /** These pods' images cannot be pulled: ErrImagePull, then ImagePullBackOff. */
  failImagePull(match?: PodMatch, message?: string): Undo;
}

/** What a node does when it is told to. Each rejects with NoSuchPodError when no such pod is on the node. */
export interface NodeFaultActions {
  /** As a kubelet under pressure: the containers end with their grace, the pod is Failed with reason Evicted. Resolves when that is stored. */
  evict(pod: PodPlace, message?: string): Promise<void>;
  /** Ends the container's processes by SIGKILL, as a crash does. What follows is the restart policy's. Resolves when they have ended. */
  killContainer(pod: PodPlace, container?: string): Promise<void>;
  /**
   * Nobody reaches the pod's address and open connections get nothing, while its processes go on and its status says
   * nothing of it. Resolves, when it is so, with the way to mend it.
   */
  cutAddress(pod: PodPlace): Promise<() => Promise<void>>;
}

/** What a node asks at the points where a rule may hold it up. */
export interface NodeFaultPoints {
  /** Before a pod is bound: waits while a rule refuses it, having said why (again when the reason changes). The signal ends the waiting. */
  beforeScheduling(pod: KubeObject, say: (why: string) => void, signal: AbortSignal): Promise<void>;
  /** Before the first container of a bound pod is created. The signal ends the waiting. */
  beforeStart(pod: KubeObject, signal: AbortSignal): Promise<void>;
  /** Before an image is pulled: why it cannot be, or undefined. Asked again at each attempt of the back-off. */
  imagePullError(pod: KubeObject, image: string): string | undefined;
}

/** There is no such pod on the node; nothing was done. */
export class NoSuchPodError extends Error {
  constructor(pod: PodPlace) {
    super(`No pod ${pod.namespace ?? "default"}/${pod.name} is on this node. Nothing was done.`);
    this.name = "NoSuchPodError";
  }
}
