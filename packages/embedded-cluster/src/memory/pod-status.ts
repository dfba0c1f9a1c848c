import { listIn, stringIn, valueAt } from "../json.ts";
import type { KubeObject } from "../resource-api.ts";

/** What a stand-in node says of a pod: whole statuses, as a kubelet writes them. */
export interface PodFacts {
  readonly phase: "Pending" | "Running" | "Succeeded" | "Failed";
  readonly ip: string | undefined;
  readonly ready: boolean;
  readonly restartCount: number;
  readonly state: object;
  readonly lastState?: object;
  readonly reason?: string;
  readonly message?: string;
}

/** The facts that a pod's status tells. */
export function factsOf(pod: KubeObject): PodFacts {
  const phase = stringIn(pod.status, "phase");
  const [container] = listIn(pod.status, "containerStatuses");
  const restarts = valueAt(container, "restartCount");
  return {
    phase: phase === "Running" || phase === "Succeeded" || phase === "Failed" ? phase : "Pending",
    ip: stringIn(pod.status, "podIP"),
    ready: valueAt(container, "ready") === true,
    restartCount: typeof restarts === "number" ? restarts : 0,
    state: asObject(valueAt(container, "state")) ?? waiting("ContainerCreating"),
    lastState: asObject(valueAt(container, "lastState")) ?? {},
  };
}

export const waiting = (reason: string, message?: string): object => ({
  waiting: { reason, ...(message === undefined ? {} : { message }) },
});

export const terminated = (exitCode: number, reason: string, at: string): object => ({
  terminated: { exitCode, reason, finishedAt: at },
});

/** The status to store. `at` is the time of whatever has changed. */
export function statusOf(pod: KubeObject, facts: PodFacts, nodeAddress: string, at: string): object {
  const ready = facts.ready && facts.phase === "Running";
  const over = facts.phase === "Succeeded" || facts.phase === "Failed";
  const notReady = { reason: facts.phase === "Succeeded" ? "PodCompleted" : over ? "PodFailed" : "ContainersNotReady" };
  const readiness = ready ? { status: "True" } : { status: "False", ...notReady };
  return {
    phase: facts.phase,
    reason: facts.reason ?? null,
    message: facts.message ?? null,
    hostIP: nodeAddress,
    hostIPs: [{ ip: nodeAddress }],
    podIP: facts.ip ?? null,
    podIPs: facts.ip === undefined ? null : [{ ip: facts.ip }],
    startTime: stringIn(pod.status, "startTime") ?? at,
    qosClass: "BestEffort",
    conditions: [
      { type: "PodScheduled", status: "True" },
      { type: "Initialized", status: "True" },
      { type: "ContainersReady", ...readiness },
      { type: "Ready", ...readiness },
    ].map((condition) => ({ ...condition, lastProbeTime: null, lastTransitionTime: at })),
    containerStatuses: listIn(pod.spec, "containers").map((container) => ({
      name: stringIn(container, "name") ?? "",
      image: stringIn(container, "image") ?? "",
      imageID: "",
      state: facts.state,
      lastState: facts.lastState ?? {},
      ready,
      started: "running" in facts.state,
      restartCount: facts.restartCount,
    })),
  };
}

function asObject(value: unknown): object | undefined {
  return typeof value === "object" && value !== null ? value : undefined;
}
