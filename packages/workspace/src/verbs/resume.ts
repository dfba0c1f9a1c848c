import type { Deadline } from "@holdfast/async";
import { gate } from "../fence/gate.ts";
import { assertIngressSettled, assertUsable } from "../fence/standing.ts";
import type { Handle } from "../state/handle.ts";
import type { Origin, ResumeWish } from "../wishes.ts";
import { bindStarted } from "./bind-started.ts";
import { refreshes } from "./refresh.ts";
import { reopen } from "./reopen.ts";
import { startAttempt } from "./start-attempt.ts";
import { starting } from "./starting.ts";
import { wake } from "./wake.ts";

/** Brings a pod to the disk and binds it. One that is active and untouched since is confirmed by a read, and nothing is sent (L5). */
export async function resume(ws: Handle, wish: ResumeWish, within: Deadline): Promise<Origin> {
  const attempt = startAttempt(ws, wish.onStartFailure ?? ws.onStartFailure, wish);
  return await starting(ws, attempt, within, async () => {
    assertIngressSettled(ws);
    const { sandbox } = await gate(ws, attempt.fencing, within);
    if (!refreshes(wish, sandbox)) assertUsable(ws, sandbox, undefined);
    const reopened = await reopen(ws, sandbox, attempt, undefined, within);
    if (reopened?.kept) return "already_open";
    if (ws.state.t !== "resuming") ws.commit({ t: "resumeBegan" });
    const origin = reopened?.origin ?? (await wake(ws, sandbox, attempt, undefined, within));
    await bindStarted(ws, attempt, within);
    ws.origin ??= origin;
    return origin;
  });
}
