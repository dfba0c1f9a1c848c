import type { KubeObject } from "../resource-api.ts";
import { numberOf, recordOf, recordsOf, textOf } from "./json-shape.ts";
import { kubeTime } from "./resources.ts";

export type PodPhase = "Pending" | "Running" | "Succeeded" | "Failed";

export interface Termination {
  readonly exitCode: number;
  readonly reason: string;
  readonly message?: string;
  readonly startedAt?: string;
  readonly finishedAt?: string;
  readonly containerID?: string;
}

export type ContainerState =
  | { readonly waiting: { readonly reason: string; readonly message?: string } }
  | { readonly running: { readonly startedAt: string } }
  | { readonly terminated: Termination };

/** What is known of a pod right now. */
export interface PodView {
  readonly phase: PodPhase;
  readonly reason: string | undefined;
  readonly message: string | undefined;
  /** Why the pod is not on a node yet; undefined when it is. */
  readonly unscheduled: string | undefined;
  readonly ip: string | undefined;
  readonly startTime: string | undefined;
  readonly state: ContainerState;
  readonly lastTermination: Termination | undefined;
  readonly containerId: string | undefined;
  readonly restartCount: number;
  readonly started: boolean;
  readonly ready: boolean;
  /** The container ran when the node stopped or died, and not since. */
  readonly interrupted: boolean;
}

interface Condition {
  readonly type: string;
  readonly status: "True" | "False";
  readonly reason?: string;
  readonly message?: string;
  readonly lastProbeTime: null;
  readonly lastTransitionTime: string;
}

/** One pod's status as Kubernetes words it. Remembers since when each condition holds. */
export class PodReport {
  readonly #container: string;
  readonly #image: string;
  readonly #hostIp: string;
  #conditions: ReadonlyMap<string, Condition>;
  #view: PodView;

  constructor(pod: KubeObject, hostIp: string) {
    const status = recordOf(pod.status);
    const container = recordOf(recordsOf(recordOf(pod.spec).containers)[0]);
    this.#container = textOf(container.name) ?? "";
    this.#image = textOf(container.image) ?? "";
    this.#hostIp = hostIp;
    this.#conditions = readConditions(status);
    this.#view = readView(status);
  }

  get view(): PodView {
    return this.#view;
  }

  /** Changes the view and answers the whole status to store. */
  update(change: Partial<PodView>): object {
    this.#view = { ...this.#view, ...change };
    return this.#render();
  }

  #render(): object {
    const view = this.#view;
    const now = kubeTime(new Date());
    const before = this.#conditions;
    const conditions = conditionsOf(view, this.#container).map((condition): Condition => {
      const old = before.get(condition.type);
      const lastTransitionTime = old?.status === condition.status ? old.lastTransitionTime : now;
      return { ...condition, lastProbeTime: null, lastTransitionTime };
    });
    this.#conditions = new Map(conditions.map((condition) => [condition.type, condition]));
    const onNode = view.unscheduled === undefined;
    return {
      phase: view.phase,
      // null takes a member away in a merge patch
      reason: view.reason ?? null,
      message: view.message ?? null,
      hostIP: onNode ? this.#hostIp : null,
      hostIPs: onNode ? [{ ip: this.#hostIp }] : null,
      podIP: view.ip ?? null,
      podIPs: view.ip === undefined ? null : [{ ip: view.ip }],
      startTime: view.startTime ?? null,
      qosClass: "BestEffort",
      conditions,
      containerStatuses: onNode ? [this.#containerStatus()] : null,
    };
  }

  #containerStatus(): object {
    const view = this.#view;
    return {
      name: this.#container,
      image: this.#image,
      imageID: "",
      state: view.state,
      lastState: view.lastTermination === undefined ? {} : { terminated: view.lastTermination },
      ready: view.ready,
      started: view.started,
      restartCount: view.restartCount,
      ...(view.containerId === undefined ? {} : { containerID: view.containerId }),
    };
  }
}

type BareCondition = Omit<Condition, "lastProbeTime" | "lastTransitionTime">;

function conditionsOf(view: PodView, container: string): BareCondition[] {
  if (view.unscheduled !== undefined)
    return [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message: view.unscheduled }];
  const readiness = {
    status: view.ready ? "True" : "False",
    ...(view.ready ? {} : whyNotReady(view, container)),
  } as const;
  return [
    { type: "PodScheduled", status: "True" },
    { type: "Initialized", status: "True" },
    { type: "ContainersReady", ...readiness },
    { type: "Ready", ...readiness },
  ];
}

function whyNotReady(view: PodView, container: string): { reason: string; message?: string } {
  if (view.phase === "Succeeded") return { reason: "PodCompleted" };
  if (view.phase === "Failed") return { reason: "PodFailed" };
  return { reason: "ContainersNotReady", message: `containers with unready status: [${container}]` };
}

function readConditions(status: ReturnType<typeof recordOf>): Map<string, Condition> {
  const conditions = new Map<string, Condition>();
  for (const entry of recordsOf(status.conditions)) {
    const [type, since] = [textOf(entry.type), textOf(entry.lastTransitionTime)];
    if (type === undefined || since === undefined) continue;
    const known = entry.status === "True" ? "True" : "False";
    conditions.set(type, { type, status: known, lastProbeTime: null, lastTransitionTime: since });
  }
  return conditions;
}

/** What the stored status still tells after the node was away: nothing runs, whatever it says. */
function readView(status: ReturnType<typeof recordOf>): PodView {
  const phase = textOf(status.phase);
  const container = recordOf(recordsOf(status.containerStatuses)[0]);
  const state = recordOf(container.state);
  const lastState = recordOf(container.lastState);
  const ranBefore = state.running !== undefined || state.terminated !== undefined;
  const terminal = phase === "Succeeded" || phase === "Failed";
  const ended = readTermination(state.terminated);
  return {
    phase: terminal ? phase : phase === "Running" ? "Running" : "Pending",
    reason: textOf(status.reason),
    message: textOf(status.message),
    unscheduled: undefined,
    ip: undefined,
    startTime: textOf(status.startTime),
    state: terminal && ended !== undefined ? { terminated: ended } : { waiting: { reason: "ContainerCreating" } },
    lastTermination: terminal || !ranBefore ? readTermination(lastState.terminated) : (ended ?? lostTrack(state)),
    containerId: textOf(container.containerID),
    restartCount: numberOf(container.restartCount, 0) + (ranBefore && !terminal ? 1 : 0),
    started: false,
    ready: false,
    interrupted: ranBefore && !terminal,
  };
}

/** The container ran when the node was killed; how it ended was seen by nobody. */
function lostTrack(state: ReturnType<typeof recordOf>): Termination {
  const startedAt = textOf(recordOf(state.running).startedAt);
  return {
    exitCode: 137,
    reason: "ContainerStatusUnknown",
    message: "The node stopped while the container ran; how it ended is not known",
    ...(startedAt === undefined ? {} : { startedAt }),
  };
}

function readTermination(value: unknown): Termination | undefined {
  const read = recordOf(value);
  if (typeof read.exitCode !== "number") return undefined;
  const texts = ["message", "startedAt", "finishedAt", "containerID"].flatMap((member) => {
    const text = textOf(read[member]);
    return text === undefined ? [] : [[member, text] as const];
  });
  return { exitCode: read.exitCode, reason: textOf(read.reason) ?? "Error", ...Object.fromEntries(texts) };
}
