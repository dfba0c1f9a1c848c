import { Deadline } from "@holdfast/async";
import { clusterRequestTimeoutMs, guestDialTimeoutMs } from "@holdfast/contract";
import { HoldfastError, hasReason } from "@holdfast/errors";
import { hasEnded } from "../binding/bindable.ts";
import type { AgentHealth, Evidence, GuestIdentity } from "../events/workspace-event.ts";
import { findOwn } from "../fence/gate.ts";
import { GuestNotReached } from "../ports/guest.ts";
import { workspaceSuspended } from "../refusals.ts";
import type { Handle } from "../state/handle.ts";
import type { Cancelled } from "./cancel-execution.ts";
import { observeForeignSuspend } from "./foreign-suspend.ts";

interface Finding {
  readonly evidence: Evidence;
  readonly current: GuestIdentity | undefined;
  readonly agent: AgentHealth;
}

/**
 * Makes the error of a cancellation that was not confirmed, after it stands in every listener's queue (L43). What is
 * proved of the guest outranks everything but a foreign suspend.
 */
export async function tellUnconfirmed(ws: Handle, cancelled: Cancelled, cause: unknown): Promise<HoldfastError> {
  const finding = await lookFor(ws, cancelled, cause);
  const error = errorOf(ws, cancelled, finding, cause);
  const { executionId, startedOn: previous } = cancelled;
  ws.publish({ t: "cancellation_unconfirmed", executionId, previous, ...finding, error });
  return error;
}

/** In the order of L43: what proves most comes first, and what could not be read is not guessed. */
async function lookFor(ws: Handle, cancelled: Cancelled, cause: unknown): Promise<Finding> {
  const { startedOn } = cancelled;
  const heard = await hear(ws, cancelled, cause);
  const found = (evidence: Evidence, current?: GuestIdentity): Finding => ({ evidence, current, agent: heard.agent });
  const restarted = bootMoved(startedOn, heard.bootId) || bootMoved(startedOn, bootIdHeldOf(ws, startedOn));
  const here = { podUid: startedOn.podUid, bootId: heard.bootId ?? bootIdHeldOf(ws, startedOn) };
  using reads = new Deadline(ws.deps.clock, clusterRequestTimeoutMs);
  try {
    if (ws.inTransition) return found("unknown");
    const object = await findOwn(ws, reads);
    if (object.t !== "ours" || object.sandbox.deleting) return found("unknown");
    if (object.sandbox.mode === "Suspended") {
      observeForeignSuspend(ws, startedOn.podUid);
      return found("pod_gone");
    }
    const pods = await ws.deps.cluster.readPods(object.sandbox, reads);
    const pod = pods.find(({ uid }) => uid === startedOn.podUid);
    const other = pods.find((one) => one.uid !== startedOn.podUid && !hasEnded(one));
    if (other && (!pod || hasEnded(pod))) return found("pod_replaced", { podUid: other.uid, bootId: undefined });
    if (!pod || hasEnded(pod)) return found("pod_gone");
  } catch (error) {
    ws.deps.log.info({ workspaceId: ws.id, error }, "where a command's guest went could not be read");
    return restarted ? found("container_restarted", here) : found("unknown");
  }
  return restarted ? found("container_restarted", here) : found("same_guest", here);
}

interface HeardGuest {
  readonly agent: AgentHealth;
  readonly bootId: GuestIdentity["bootId"];
}

/** Asks the guest how it is, over a fresh connection. `retiring` only if it says so; anything that is no answer is `unreachable`. */
async function hear(ws: Handle, { address, startedOn }: Cancelled, cause: unknown): Promise<HeardGuest> {
  const guest = ws.deps.guests.guest(address);
  using answer = new Deadline(ws.deps.clock, guestDialTimeoutMs);
  try {
    const { serving, bootId } = await guest.health(answer);
    const { state } = ws;
    if (state.t === "active" && state.bound.pod.uid === startedOn.podUid) ws.noteBootId(state.bound, bootId);
    return { agent: serving ? "ok" : "retiring", bootId: bootId === "" ? undefined : bootId };
  } catch (error) {
    const saysSo = (one: unknown): boolean =>
      hasReason(one, "AGENT_RETIRING") || (one instanceof GuestNotReached && one.why === "retiring");
    return { agent: saysSo(error) || saysSo(cause) ? "retiring" : "unreachable", bootId: undefined };
  } finally {
    guest.close();
  }
}

/** What another call has heard of the same pod by now. */
function bootIdHeldOf(ws: Handle, { podUid }: GuestIdentity): GuestIdentity["bootId"] {
  const { state } = ws;
  return state.t === "active" && state.bound.pod.uid === podUid ? state.bound.bootId : undefined;
}

/** Only where both are known: a guest without boot ids never restarts. */
function bootMoved({ bootId }: GuestIdentity, now: GuestIdentity["bootId"]): boolean {
  return bootId !== undefined && now !== undefined && now !== "" && now !== bootId;
}

function errorOf(ws: Handle, cancelled: Cancelled, { evidence, current }: Finding, cause: unknown): HoldfastError {
  const { executionId, startedOn } = cancelled;
  if (ws.state.t === "suspending" || ws.state.t === "suspended") return workspaceSuspended(ws, "TRANSPORT", cause);
  const metadata = {
    execution_id: executionId,
    evidence,
    previous_pod: startedOn.podUid,
    previous_boot_id: startedOn.bootId ?? "",
    current_pod: current?.podUid ?? "",
    current_boot_id: current?.bootId ?? "",
  };
  if (evidence === "pod_gone" || evidence === "pod_replaced" || evidence === "container_restarted") {
    return new HoldfastError("GUEST_GONE", {
      message: `The guest of workspace ${ws.id} that ran execution ${executionId} is gone (${evidence}): it ran in pod ${startedOn.podUid}. What became of the command is not known. Look at what it did before you run it again.`,
      metadata,
      cause,
    });
  }
  if (hasReason(cause, "CANCELLATION_UNCONFIRMED")) return cause.withMetadata(metadata);
  return new HoldfastError("CANCELLATION_UNCONFIRMED", {
    message: `It was not confirmed that execution ${executionId} of workspace ${ws.id} has ended: its guest was asked again and did not say so. Nothing was stopped for it, and its pod is kept. Cancel it again, or suspend and resume the workspace, which ends every program.`,
    metadata,
    cause,
  });
}
