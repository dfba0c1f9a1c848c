import { setTimeout as delay } from "node:timers/promises";
import { leftoversNamedMax, sessionKillAnswerMs } from "@holdfast/contract";
import { AnsweredError } from "@holdfast/guest-link";
import type { Belonging } from "../execution/belonging.ts";
import { membersOf } from "../execution/members.ts";
import { type Process, signalProcess } from "../execution/processes.ts";
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
  const endsAtMs = performance.now() + sessionKillAnswerMs;
  for (let waitMs = scanFirstMs; ; waitMs = Math.min(scanMaxMs, waitMs * 2)) {
    const left = await look(belonging, wish.id);
    admit();
    for (const member of left) signalProcess(member, signal);
    if (left.length === 0 || signal !== "SIGKILL") break;
    const restMs = endsAtMs - performance.now();
    if (restMs <= 0) throw survived(wish.id, left);
    await delay(Math.min(waitMs, restMs));
  }
  const late = new AbortController();
  const restMs = Math.max(0, endsAtMs - performance.now());
  await Promise.race([session.ended, delay(restMs, undefined, { signal: late.signal }).catch(() => undefined)]);
  late.abort();
}

async function look(belonging: Belonging, id: string): Promise<readonly Process[]> {
  try {
    return await membersOf(belonging);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new AnsweredError(
      "CANCELLATION_UNCONFIRMED",
      `Session ${id} was told to end, and the guest could not look at its processes (${why}). Whether it runs is not known; ask again.`,
      { session_id: id, cause: why },
    );
  }
}

function survived(id: string, left: readonly Process[]): AnsweredError {
  const named = left.slice(0, leftoversNamedMax).map(({ pid, name }) => `${pid} (${name})`);
  return new AnsweredError(
    "CANCELLATION_UNCONFIRMED",
    `Session ${id} was told to end, and ${named.join(", ")} survived SIGKILL. What it did is not known; ask again.`,
    { session_id: id, survivors: named.join(",") },
  );
}
