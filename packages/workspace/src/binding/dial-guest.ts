import type { Deadline } from "@holdfast/async";
import { agentPort, type HolderEpoch } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import type { SandboxReading } from "../ports/cluster.ts";
import { type Guest, GuestNotReached } from "../ports/guest.ts";
import type { Handle } from "../state/handle.ts";
import type { BoundGuest } from "../state/workspace-state.ts";
import { agentHostOf } from "./agent-host.ts";
import type { BindablePod } from "./bindable.ts";
import { fenceGuest, type Judge, readAfterPod } from "./fence-guest.ts";
import { judgePrivileges } from "./privilege.ts";
import { UnreachedPod } from "./unreached-pod.ts";

/** The guest accepted a connection and did not answer the probe. */
export class ProbeUnanswered extends Error {
  constructor(cause: unknown) {
    super("the agent did not answer the privilege probe", { cause });
    this.name = "ProbeUnanswered";
  }
}

/** How long an agent may take to confirm its fence, and then to answer the probe and its first health question, before it is dialled anew. */
export const bindAnswerMs = 10_000;

/** A guest that proved itself, and the object that it was fenced with. */
export interface Dialled {
  readonly bound: BoundGuest;
  readonly sandbox: SandboxReading;
}

/**
 * Reaches the guest in this pod. Before anything else is asked of it, it is fenced with what the object says, read after its pod was
 * (L22), and then proves that it is deprivileged (L17, G32). Throws what `judge` throws, GUEST_PRIVILEGED, GuestNotReached, GuestLost,
 * ProbeUnanswered or StandingMoved.
 */
export async function dialGuest(
  ws: Handle,
  sandbox: SandboxReading,
  pod: BindablePod,
  within: Deadline,
  judge?: Judge,
): Promise<Dialled> {
  const host = agentHostOf(ws, sandbox, pod);
  if (host === undefined) throw new GuestNotReached("no-connection", "its Service has no name yet");
  const unreached = new UnreachedPod(ws);
  const guest = ws.deps.guests.guest({ host, port: agentPort, podUid: pod.uid }, () => unreached.tried());
  try {
    const now = await readAfterPod(ws, sandbox, within);
    judge?.(now);
    const fenced = await fenceInTime(ws, guest, now, within);
    if (fenced > 0) ws.progressed("bound"); // Else nothing was asked of it yet.
    using answer = within.within(bindAnswerMs);
    const isProved = await proveDeprivileged(ws, guest, answer);
    if (fenced === 0) ws.progressed("bound");
    if (isProved) ws.progressed("probed");
    const health = await guest.health(answer);
    if (!health.serving) throw new GuestNotReached("retiring", `the agent in pod ${pod.name} is stopping`);
    const { features, bootId } = health;
    return { bound: { guest, pod, sandboxUid: now.uid, features, bootId, fenced }, sandbox: now };
  } catch (error) {
    guest.close();
    throw error;
  }
}

/** In a time of its own: a fence waits for what it withdraws, and the probe must not be blamed for that. */
async function fenceInTime(ws: Handle, guest: Guest, now: SandboxReading, within: Deadline): Promise<HolderEpoch> {
  using answer = within.within(bindAnswerMs);
  return await fenceGuest(ws, guest, now, answer);
}

/** False: it has not proved it, which is only reported. */
async function proveDeprivileged(ws: Handle, guest: Guest, within: Deadline): Promise<boolean> {
  const seen = await probe(guest, within);
  if (!seen) return true;
  if (ws.deps.policy.probe === "report") {
    ws.deps.log.warn(
      { workspaceId: ws.id, podUid: guest.address.podUid, seen: seen.words },
      "the guest is privileged (only reported)",
    );
    return false;
  }
  throw guestPrivileged(ws, seen);
}

/** Why a guest is not taken for deprivileged. `proven`: its own status says it, rather than nothing. */
interface Unproved {
  readonly words: string;
  readonly proven: boolean;
}

async function probe(guest: Guest, within: Deadline): Promise<Unproved | undefined> {
  let status: string;
  try {
    status = await guest.probe(within);
  } catch (error) {
    if (within.expired) throw new ProbeUnanswered(error);
    if (error instanceof HoldfastError && error.reason !== "AGENT_RETIRING")
      return { words: `the probe was refused: ${error.message}`, proven: false };
    throw error;
  }
  const verdict = judgePrivileges(status);
  if (verdict.t === "deprivileged") return undefined;
  return { words: verdict.t === "privileged" ? verdict.seen : `unreadable: ${verdict.seen}`, proven: true };
}

/** Refused: it is privileged, or could not show that it is not. */
export function guestPrivileged(ws: Handle, { words: seen, proven }: Unproved, cause?: unknown): HoldfastError {
  return new HoldfastError("GUEST_PRIVILEGED", {
    message: `The guest of workspace ${ws.id} did not prove that it runs without privileges (${seen}). No command was sent to it. Correct the pod template: no capabilities, no new privileges, not root.`,
    metadata: { seen, proven: String(proven) },
    cause,
  });
}
