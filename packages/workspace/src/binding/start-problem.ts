import type { PodUid } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import type { PodReading } from "../ports/cluster.ts";
import { GuestNotReached } from "../ports/guest.ts";
import { workspaceNotReady } from "../refusals.ts";
import type { Handle } from "../state/handle.ts";
import { bindableOf, isCandidate } from "./bindable.ts";
import { notReached } from "./guest-failure.ts";

/** What the last look of a wait for a guest found. */
export interface LastLook {
  readonly pods: readonly PodReading[] | undefined;
  readonly left: ReadonlySet<PodUid>;
  /** The first look of the wait found only a pod on its way out. */
  readonly walkedInOnTerminating: boolean;
  /** A pod is ready, and its Service has no name to dial yet. */
  readonly noServiceName?: boolean;
  /** The last read or dial that failed. */
  readonly failure: unknown;
}

export interface StartProblem {
  /** For programs. */
  readonly problem: string;
  /** For people. */
  readonly words: string;
  readonly pod: string | undefined;
}

/** Which problem a start that ran out of time had (L18). */
export function startProblemOf(look: LastLook): StartProblem {
  const { pods, left } = look;
  if (pods === undefined) return { problem: "unread", words: "its pods could not be read", pod: undefined };
  const candidate = pods.find((pod) => isCandidate(pod, left));
  if (candidate && look.noServiceName === true) {
    const words = `the Service of its pod ${candidate.name} never got a name`;
    return { problem: "no_address", words, pod: candidate.name };
  }
  if (candidate) return candidateProblem(candidate, left);
  const [leaving] = pods;
  if (leaving === undefined) return { problem: "no_pod", words: "the cluster made no pod for it", pod: undefined };
  if (look.walkedInOnTerminating) {
    const words = `its old pod ${leaving.name} was terminating when this call came, and is not gone yet`;
    return { problem: "adopted_while_terminating", words, pod: leaving.name };
  }
  const words = `only the pod that is being left (${leaving.name}) exists`;
  return { problem: "only_pod_being_left", words, pod: leaving.name };
}

function candidateProblem(pod: PodReading, left: ReadonlySet<PodUid>): StartProblem {
  const of = (problem: string, words: string): StartProblem => ({ problem, words, pod: pod.name });
  // A pod that runs without an address outranks what else is wrong with it.
  if (pod.ip === undefined && (pod.ready || pod.phase === "Running")) {
    return of("no_address", `its pod ${pod.name} never got an address`);
  }
  if (pod.problem !== undefined) return of(kindOf(pod.problem), `its pod ${pod.name} does not start: ${pod.problem}`);
  if (bindableOf([pod], left)) {
    return of("agent_unreachable", `its pod ${pod.name} is ready, but its agent could not be reached from here`);
  }
  return of("never_ready", `its pod ${pod.name} never became ready (${pod.phase})`);
}

function kindOf(problem: string): string {
  const kinds = ["unschedulable", "image pull", "crash loop", "out of memory"];
  return kinds.find((kind) => problem.startsWith(kind))?.replaceAll(" ", "_") ?? "pod_problem";
}

/** The deadline of a start ran out. */
export function startTimeout(ws: Handle, look: LastLook, budgetMs: number): HoldfastError {
  const { problem, words, pod } = startProblemOf(look);
  return new HoldfastError("START_TIMEOUT", {
    message: `Workspace ${ws.id} was not usable within ${budgetMs} ms: ${words}. Its disk is kept. Correct the cause, then open or resume it again.`,
    metadata: { problem, pod: pod ?? "", budget_ms: String(budgetMs) },
    cause: look.failure,
  });
}

/** A call's short wait for a bindable pod ran out. */
export function notUsableYet(ws: Handle, look: LastLook): HoldfastError {
  const { problem, words, pod } = startProblemOf(look);
  if (problem === "agent_unreachable" && look.failure instanceof GuestNotReached) return notReached(ws, look.failure);
  return workspaceNotReady(ws, words, look.failure).withMetadata({ problem, pod: pod ?? "" });
}
