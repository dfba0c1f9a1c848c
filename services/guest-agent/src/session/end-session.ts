import { setTimeout as delay } from "node:timers/promises";
import { sessionKillAnswerMs } from "@holdfast/contract";
import type { Belonging } from "../execution/belonging.ts";
import { membersOf } from "../execution/members.ts";
import { type Process, signalProcess } from "../execution/processes.ts";
import { survived, type ToldToEnd, unseen } from "../execution/unconfirmed-end.ts";
import type { Session } from "./session.ts";

const scanFirstMs = 2;
const scanMaxMs = 40;

/**
 * Signals everything of a session: with SIGKILL until a scan finds nothing, with another signal once. Resolves with the session's end,
 * or after 5 s; rejects with CANCELLATION_UNCONFIRMED when something survived SIGKILL, or nobody could look, and as `admit` throws,
 * which is asked in the same step as each signal.
 */
export async function endSession(session: Session, signal: NodeJS.Signals, admit: () => void): Promise<void> {
  const { belonging, wish } = session;
  if (belonging === undefined) return; // It never ran.
  const told = { kind: "session", id: wish.id } as const;
  const endsAtMs = performance.now() + sessionKillAnswerMs;
  for (let waitMs = scanFirstMs; ; waitMs = Math.min(scanMaxMs, waitMs * 2)) {
    const left = await look(belonging, told);
    admit();
    for (const member of left) signalProcess(member, signal);
    if (left.length === 0 || signal !== "SIGKILL") break;
    const restMs = endsAtMs - performance.now();
    if (restMs <= 0) throw survived(told, left);
    await delay(Math.min(waitMs, restMs));
  }
  const late = new AbortController();
  const restMs = Math.max(0, endsAtMs - performance.now());
  await Promise.race([session.ended, delay(restMs, undefined, { signal: late.signal }).catch(() => undefined)]);
  late.abort();
}

async function look(belonging: Belonging, told: ToldToEnd): Promise<readonly Process[]> {
  try {
    return await membersOf(belonging);
  } catch (error) {
    throw unseen(told, error);
  }
}
