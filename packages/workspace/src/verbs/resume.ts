import type { Deadline } from "@holdfast/async";
import { gate } from "../fence/gate.ts";
import { assertIngressSettled, assertUsable } from "../fence/standing.ts";
import type { Handle } from "../state/handle.ts";
import type { Origin, ResumeWish } from "../wishes.ts";
import { bindStarted } from "./bind-started.ts";
import { startAttempt } from "./start-attempt.ts";
import { starting } from "./starting.ts";
import { wake } from "./wake.ts";

/** Brings a pod to the disk and binds it. One that is active and untouched since is confirmed by a read, and nothing is sent (L5). */
export async function resume(ws: Handle, wish: ResumeWish, within: Deadline): Promise<Origin> {
  const attempt = startAttempt(ws, wish.onStartFailure ?? ws.onStartFailure);
  return await starting(ws, attempt, within, async () => {
    assertIngressSettled(ws);
    const sandbox = await gate(ws, within);
    assertUsable(ws, sandbox, undefined);
    if (ws.state.t === "active" && ws.stillConfirmed(sandbox)) return "already_open";
    ws.commit({ t: "resumeBegan" });
    const origin = await wake(ws, sandbox, attempt, undefined, within);
    await bindStarted(ws, within);
    ws.origin ??= origin;
    return origin;
  });
}
