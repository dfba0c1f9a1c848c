import type { Deadline } from "@holdfast/async";
import { notUsableYet } from "../binding/start-problem.ts";
import { gate } from "../fence/gate.ts";
import { assertIngressSettled, assertUsable } from "../fence/standing.ts";
import { workspaceSuspended } from "../refusals.ts";
import type { Handle } from "../state/handle.ts";
import { bindStarted } from "./bind-started.ts";
import { startAttempt } from "./start-attempt.ts";
import { starting } from "./starting.ts";

/** Takes on a workspace that runs. Never creates, wakes or stamps; what the call does not name is not compared. */
export async function adopt(ws: Handle, within: Deadline): Promise<void> {
  await starting(ws, startAttempt(ws, "leave"), within, async () => {
    assertIngressSettled(ws);
    const sandbox = await gate(ws, within);
    assertUsable(ws, sandbox, undefined);
    if (sandbox.mode === "Suspended") throw workspaceSuspended(ws, "ADMISSION");
    await bindStarted(ws, within, (look) => notUsableYet(ws, look));
    ws.origin ??= "adopted_running";
    return "adopted_running";
  });
}
