import type { Deadline } from "@holdfast/async";
import { type ClaimUids, mustRecord, recordedClaims } from "../binding/claims.ts";
import { requireStanding } from "../fence/gate.ts";
import type { SandboxReading } from "../ports/cluster.ts";
import { workspaceSuspended } from "../refusals.ts";
import type { Handle } from "../state/handle.ts";
import { pauseBeforeRetry } from "../waiting.ts";
import { writeMode } from "../writes/write-mode.ts";
import { assertStillHeld, newMark, type StartAttempt } from "./start-attempt.ts";

/**
 * L16: records at once which disk a caller has accepted in the place of another, so that the next start does not refuse it again. Moves
 * no mode. Returns the object as it stands then.
 */
export async function recordAcceptedDisk(
  ws: Handle,
  attempt: StartAttempt,
  bound: { readonly sandbox: SandboxReading; readonly claimUids: ClaimUids },
  within: Deadline,
): Promise<SandboxReading> {
  let { sandbox } = bound;
  for (let round = 0; mustRecord(sandbox, bound.claimUids); round += 1) {
    // Its epoch was stored before, and is tested. A claim that could not be read keeps its record.
    const volumeClaimUids = { ...recordedClaims(sandbox.stamps.volumeClaimUids), ...bound.claimUids };
    const marks = { writtenBy: newMark(ws, attempt), epoch: undefined, volumeClaimUids };
    const outcome = await writeMode(ws, { mode: "Running", from: sandbox, ...marks }, within);
    if (outcome.t === "applied") return outcome.sandbox;
    if (outcome.t !== "moved") throw outcome.error;
    await pauseBeforeRetry(ws.deps, round, within);
    sandbox = await requireStanding(ws, within);
    assertStillHeld(attempt, sandbox);
    if (sandbox.mode === "Suspended") throw workspaceSuspended(ws, "START");
  }
  return sandbox;
}
