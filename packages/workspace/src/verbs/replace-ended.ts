import type { Deadline } from "@holdfast/async";
import { endedByItself } from "../binding/bindable.ts";
import { requireStanding } from "../fence/gate.ts";
import type { PodReading } from "../ports/cluster.ts";
import type { Handle } from "../state/handle.ts";
import { writeDeadline } from "../waiting.ts";
import { assertStillHeld, type StartAttempt } from "./start-attempt.ts";

/**
 * L42: deletes the pod of a Running workspace that ended by itself, so that the cluster makes the next one: by its uid, only while it is
 * Failed or Succeeded, and only for a call that asked for the workspace to run and still holds it. The disk stays. What it leaves
 * is for the next look to find.
 */
export async function replaceEnded(
  ws: Handle,
  attempt: StartAttempt,
  { uid }: PodReading,
  within: Deadline,
): Promise<void> {
  const sandbox = await requireStanding(ws, within);
  assertStillHeld(attempt, sandbox);
  if (sandbox.mode !== "Running") return;
  const ended = endedByItself(await ws.deps.cluster.readPods(sandbox, within));
  if (ended?.uid !== uid) return;

  ws.waitingFor = `the pod after ${ended.name}, which had ended by itself`;
  using time = writeDeadline(ws.deps);
  const { name, resourceVersion } = ended;
  const ending = await ws.deps.cluster.deletePod({ name, uid, resourceVersion }, time);
  if (ending.t === "refused" && ending.why === "other") throw ending.error;
  // A pod that changed or went is left to the next look: it is not of this call's doing.
  if (ending.t === "refused") return;
  // So is an unknown ending: a delete that lands late names this dead pod and no other.
  ws.deps.log.warn(
    { workspaceId: ws.id, pod: name, podUid: uid, ending: ending.t },
    "the delete of a pod that had ended by itself was sent",
  );
  ws.guestMoves.expected();
}
