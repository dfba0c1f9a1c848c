import { type JsonRecord, numberOf, recordOf, textOf } from "./json-shape.ts";
import type { RestartPolicy } from "./pod-plan.ts";

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

/** What is known of one container right now. */
export interface ContainerView {
  readonly state: ContainerState;
  readonly lastTermination: Termination | undefined;
  readonly containerId: string | undefined;
  readonly restartCount: number;
  readonly started: boolean;
  readonly ready: boolean;
}

/** Tells whether a container that ended so is started again. */
export function mayRestart(policy: RestartPolicy, exitCode: number): boolean {
  return policy === "Always" || (policy === "OnFailure" && exitCode !== 0);
}

/**
 * What a stored status still tells after the node was away: nothing runs, whatever it says. `waitingFor` is what a
 * container that is to run waits for at first; `terminal` is a pod that ended for good, of which nothing runs again.
 */
export function readContainerView(
  status: JsonRecord,
  how: { readonly policy: RestartPolicy; readonly waitingFor: string; readonly terminal: boolean },
): ContainerView {
  const state = recordOf(status.state);
  const last = readTermination(recordOf(status.lastState).terminated);
  const ended = readTermination(state.terminated) ?? (state.running === undefined ? undefined : lostTrack(state));
  const staysEnded = ended !== undefined && (how.terminal || !mayRestart(how.policy, ended.exitCode));
  const runsAgain = !staysEnded && (ended !== undefined || isBackingOff(state));
  return {
    state: staysEnded ? { terminated: ended } : { waiting: { reason: how.waitingFor } },
    lastTermination: staysEnded ? last : (ended ?? last),
    containerId: textOf(status.containerID),
    restartCount: numberOf(status.restartCount, 0) + (runsAgain ? 1 : 0),
    started: false,
    ready: false,
  };
}

/** The container of a stored status ran, or was about to run again. */
export function ranBefore(status: JsonRecord): boolean {
  const state = recordOf(status.state);
  return state.running !== undefined || state.terminated !== undefined || isBackingOff(state);
}

/** It ended and waits to be started again: that start counts as a restart whoever makes it. */
function isBackingOff(state: JsonRecord): boolean {
  return ["CrashLoopBackOff", "RunContainerError"].includes(textOf(recordOf(state.waiting).reason) ?? "");
}

/** One container's entry of a pod's status. */
export function containerStatusOf(view: ContainerView, name: string, image: string): object {
  return {
    name,
    image,
    imageID: "",
    state: view.state,
    lastState: view.lastTermination === undefined ? {} : { terminated: view.lastTermination },
    ready: view.ready,
    started: view.started,
    restartCount: view.restartCount,
    ...(view.containerId === undefined ? {} : { containerID: view.containerId }),
  };
}

/** The container ran when the node was killed; how it ended was seen by nobody. */
function lostTrack(state: JsonRecord): Termination {
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
