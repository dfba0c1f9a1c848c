import type { Deadline } from "@holdfast/async";
import { readClaims } from "../binding/claims.ts";
import { startTimeout } from "../binding/start-problem.ts";
import { gate } from "../fence/gate.ts";
import { assertUsable } from "../fence/standing.ts";
import type { PodReading, SandboxReading } from "../ports/cluster.ts";
import type { Handle } from "../state/handle.ts";
import { awaitChange, pauseBeforeRetry } from "../waiting.ts";
import type { Origin } from "../wishes.ts";
import { writeMode } from "../writes/write-mode.ts";
import type { StartAttempt } from "./start-attempt.ts";

/**
 * Sees to it that the standing object is asked to run. One that runs already is not patched (L30), unless a write of ours is
 * unresolved: then a new written-by makes that write's condition fail. Losing the race to another's resume is an outcome.
 */
export async function wake(
  ws: Handle,
  standing: SandboxReading,
  attempt: StartAttempt,
  template: string | undefined,
  within: Deadline,
): Promise<Origin> {
  let sandbox = standing;
  for (let round = 0; ; round += 1) {
    assertUsable(ws, sandbox, template);
    const sleeping = sandbox.mode === "Suspended";
    if (!sleeping && !ws.unresolved.any) return "adopted_running";
    if (sleeping) {
      await readClaims(ws, sandbox, within);
      const ready = await awaitOldPodLeaving(ws, within);
      if (ready.mode === "Running") {
        sandbox = ready;
        continue;
      }
      sandbox = ready;
    }

    const outcome = await writeMode(ws, { mode: "Running", from: sandbox, writtenBy: attempt.writtenBy }, within);
    if (outcome.t === "applied") {
      ws.unresolved.suspendResolved();
      ws.unresolved.deleteResolved();
      attempt.woken = sleeping;
      return sleeping ? "resumed" : "adopted_running";
    }
    if (outcome.t !== "moved") throw outcome.error;
    await pauseBeforeRetry(ws.deps, round, within);
    sandbox = await gate(ws, within);
  }
}

/**
 * L12: waits until no pod stands that carries no deletionTimestamp: a controller that sees Suspended → Running at once would keep it for
 * ever. Returns the reading to patch from; one that shows Running when somebody else woke it meanwhile.
 */
async function awaitOldPodLeaving(ws: Handle, within: Deadline): Promise<SandboxReading> {
  using changes = ws.deps.cluster.changes(ws.name);
  let pods: readonly PodReading[] | undefined;
  try {
    for (;;) {
      const sandbox = await gate(ws, within);
      if (sandbox.mode === "Running") return sandbox;
      pods = await ws.deps.cluster.readPods(sandbox, within);
      if (pods.every((pod) => pod.deleting)) return sandbox;
      ws.waitingFor = "the old pod to begin its end";
      await awaitChange(changes, within);
    }
  } catch (error) {
    if (!within.expired) throw error;
    const left = new Set(pods?.map((pod) => pod.uid));
    throw startTimeout(ws, { pods, left, walkedInOnTerminating: false, failure: error }, within.budgetMs);
  }
}
