import type { Deadline } from "@holdfast/async";
import type { HolderEpoch } from "@holdfast/contract";
import { assertDiskKept } from "../binding/claims.ts";
import { startTimeout } from "../binding/start-problem.ts";
import { gate, pass, requireStanding } from "../fence/gate.ts";
import { storedEpoch } from "../fence/holder-epoch.ts";
import type { PodReading, SandboxReading } from "../ports/cluster.ts";
import type { Handle } from "../state/handle.ts";
import { awaitChange, pauseBeforeRetry } from "../waiting.ts";
import type { Origin } from "../wishes.ts";
import { writeMode } from "../writes/write-mode.ts";
import { assertUsableOrRefresh } from "./refresh.ts";
import { newMark, type StartAttempt } from "./start-attempt.ts";

/**
 * Sees to it that the standing object is asked to run, and has the call's epoch. One that runs and has it already is not patched (L30),
 * unless a write of ours is unresolved: then a new written-by makes that write's condition fail. Losing the race to another's resume is
 * an outcome. A take-over that only a re-read shows is never claimed: the next number is taken, so that no two callers have one (L20).
 */
export async function wake(
  ws: Handle,
  standing: SandboxReading,
  attempt: StartAttempt,
  template: string | undefined,
  within: Deadline,
): Promise<Origin> {
  let sandbox = standing;
  let woke = false;
  for (let round = 0; ; round += 1) {
    const refresh = await assertUsableOrRefresh(ws, sandbox, attempt, template, within);
    const sleeping = sandbox.mode === "Suspended";
    let { epoch } = pass(ws, sandbox, attempt.fencing);
    if (!sleeping && epoch === undefined && !ws.unresolved.any) return held(attempt, storedEpoch(sandbox), woke);
    if (sleeping) {
      if (ws.state.t === "active") ws.commit({ t: "resumeBegan" }); // Suspended by somebody since it was open here.
      const ready = await awaitOldPodLeaving(ws, within);
      // That may take minutes: what somebody changed or woke meanwhile is judged again.
      const isAsJudged = ready.mode === sandbox.mode && ready.generation === sandbox.generation;
      sandbox = ready;
      if (!isAsJudged) continue;
      ({ epoch } = pass(ws, sandbox, attempt.fencing));
      if (!attempt.acceptReplacedDisk) await assertDiskKept(ws, sandbox, within);
    }

    const write = { mode: "Running", from: sandbox, writtenBy: newMark(ws, attempt), epoch, refresh } as const;
    const outcome = await writeMode(ws, write, within);
    if (outcome.t === "applied") {
      attempt.woken ||= sleeping;
      if (sleeping) ws.guestMoves.expected();
      woke ||= sleeping;
      sandbox = outcome.sandbox;
      if (attempt.fencing.t === "take_over" && outcome.proof === "read_back") continue;
      // As this write left it: one that only a re-read shows may have been taken over by then.
      return held(attempt, epoch ?? storedEpoch(write.from), woke);
    }
    if (outcome.t !== "moved") throw outcome.error;
    await pauseBeforeRetry(ws.deps, round, within);
    ({ sandbox } = await gate(ws, attempt.fencing, within));
  }
}

function held(attempt: StartAttempt, epoch: HolderEpoch, woke: boolean): Origin {
  attempt.held = epoch;
  return woke ? "resumed" : "adopted_running";
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
      const sandbox = await requireStanding(ws, within);
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
