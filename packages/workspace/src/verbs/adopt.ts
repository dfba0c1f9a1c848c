import type { Deadline } from "@holdfast/async";
import { notUsableYet } from "../binding/start-problem.ts";
import { requireStanding } from "../fence/gate.ts";
import { storedEpoch } from "../fence/holder-epoch.ts";
import { assertIngressSettled, assertUsable } from "../fence/standing.ts";
import { workspaceSuspended } from "../refusals.ts";
import type { Handle } from "../state/handle.ts";
import { bindStarted } from "./bind-started.ts";
import { startAttempt } from "./start-attempt.ts";
import { starting } from "./starting.ts";

/**
 * Takes on a workspace that runs, whoever holds it: its guest judges each call's epoch. Never creates, wakes or stamps; what the call
 * does not name is not compared.
 */
export async function adopt(ws: Handle, within: Deadline): Promise<void> {
  await starting(ws, startAttempt(ws, "leave", {}), within, async () => {
    assertIngressSettled(ws);
    const sandbox = await requireStanding(ws, within);
    assertUsable(ws, sandbox, undefined);
    storedEpoch(sandbox); // One that cannot be read cannot be told to the guest.
    if (sandbox.mode === "Suspended") throw workspaceSuspended(ws, "ADMISSION");
    await bindStarted(ws, undefined, within, (look) => notUsableYet(ws, look));
    ws.origin ??= "adopted_running";
    return "adopted_running";
  });
}
