import { type Deadline, DeadlineExceeded } from "@holdfast/async";
import { clusterRequestTimeoutMs } from "@holdfast/contract";
import { HoldfastError, hasReason } from "@holdfast/errors";
import { hasEnded } from "../binding/bindable.ts";
import { requireStanding } from "../fence/gate.ts";
import type { PodReading, SandboxReading } from "../ports/cluster.ts";
import type { Handle } from "../state/handle.ts";
import { awaitChange, rereadAfterFailureMs } from "../waiting.ts";
import { isStopped } from "./read-standing.ts";

/**
 * L25: waits until no pod of this owner lives and the controller has seen the suspend, then reads the object once more. Only pods are
 * believed; a deletionTimestamp is not an end, and no condition's value counts. Commits what it finds, and returns that last read.
 */
export async function confirmStopped(ws: Handle, patchedGeneration: number, within: Deadline): Promise<SandboxReading> {
  using changes = ws.deps.cluster.changes(ws.name);
  let pods: readonly PodReading[] = [];
  for (;;) {
    let nextLookMs: number | undefined;
    try {
      const sandbox = await readStillSuspended(ws, within);
      pods = await ws.deps.cluster.readPods(sandbox, within);
      for (const pod of pods) ws.left.add(pod.uid);
      if (sandbox.generation >= patchedGeneration && isStopped(sandbox, pods)) {
        const last = await readStillSuspended(ws, within);
        if (last.generation === sandbox.generation) {
          ws.confirm(last);
          ws.commit({ t: "podGone" });
          return last;
        }
        continue; // Woken and suspended again by somebody since: another pod may stand.
      }
    } catch (error) {
      if (within.expired) throw unconfirmed(ws, pods, within, error);
      if (!hasReason(error, "CLUSTER_UNAVAILABLE") && !(error instanceof DeadlineExceeded)) throw error;
      nextLookMs = rereadAfterFailureMs;
    }
    ws.waitingFor = waitingWords(pods);
    try {
      await awaitChange(changes, within, nextLookMs);
    } catch (error) {
      if (within.expired) throw unconfirmed(ws, pods, within, error);
      throw error;
    }
  }
}

/** Somebody who woke it meanwhile wins: it is never called suspended. */
async function readStillSuspended(ws: Handle, within: Deadline): Promise<SandboxReading> {
  using read = within.within(clusterRequestTimeoutMs);
  const sandbox = await requireStanding(ws, read); // Whoever holds it by now: what is looked for is true of it or not.
  if (sandbox.mode === "Suspended") return sandbox;
  ws.commit({ t: "suspendOvertaken" });
  throw new HoldfastError("SUSPEND_OVERTAKEN", {
    message: `Workspace ${ws.id} was suspended, and somebody else woke it before its pod was seen gone. It runs now. Suspend it again if it should not.`,
  });
}

function unconfirmed(ws: Handle, pods: readonly PodReading[], within: Deadline, cause: unknown): HoldfastError {
  const live = pods.filter((pod) => !hasEnded(pod));
  const [pod] = live;
  const grace = pod?.gracePeriodSeconds;
  return new HoldfastError("SUSPEND_UNCONFIRMED", {
    message: `Workspace ${ws.id} was asked to stop, but ${waitingWords(pods)} was still awaited after ${within.budgetMs} ms. Its disk is kept and the suspend stands. Suspend it again to send and wait again.`,
    metadata: {
      budget_ms: String(within.budgetMs),
      sent: "true",
      pod: live.map(({ name }) => name).join(","),
      grace_period_seconds: grace === undefined ? "" : String(grace),
    },
    cause,
  });
}

function waitingWords(pods: readonly PodReading[]): string {
  const live = pods.filter((pod) => !hasEnded(pod));
  if (live.length === 0) return "the controller to see the suspend";
  return `the end of pod ${live.map(({ name }) => name).join(", ")}`;
}
