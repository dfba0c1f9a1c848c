import { type Deadline, DeadlineExceeded } from "@holdfast/async";
import { type GuestFeature, guestDialTimeoutMs, type HolderEpoch } from "@holdfast/contract";
import { HoldfastError, hasReason } from "@holdfast/errors";
import { bindableOf, hasEnded } from "../binding/bindable.ts";
import { dialGuest } from "../binding/dial-guest.ts";
import { storedEpoch } from "../fence/holder-epoch.ts";
import type { PodReading, SandboxReading } from "../ports/cluster.ts";
import { type Guest, GuestNotReached } from "../ports/guest.ts";
import type { Handle } from "../state/handle.ts";

/** Who can be asked before a pod is stopped. */
export type Audience =
  | {
      readonly t: "guest";
      readonly guest: Guest;
      /** That it is asked under. */
      readonly epoch: HolderEpoch | undefined;
      readonly features: readonly string[];
      readonly letGo: () => void;
    }
  /** Nothing runs that could be asked. */
  | { readonly t: "nobody"; readonly why: string }
  /** A guest may run. It could not be asked: nothing was sent to it. */
  | { readonly t: "unreachable"; readonly why: string };

/** What asking came to. `refused`: it answered something else than a confirmation; `silent`: it was asked, and no answer came. */
export type Asked<Answer> =
  | { readonly t: "answered"; readonly answer: Answer }
  | { readonly t: "missing" }
  | { readonly t: "unreachable"; readonly why: string }
  | { readonly t: "refused" | "silent"; readonly error: unknown };

/**
 * Looks who can be asked, within seconds: the bound guest, or one that is not bound here and proves itself. `letGo` is owed. The
 * guest is asked under the epoch that the object had at the gate: that is the one it was fenced with.
 */
export async function audienceOf(
  ws: Handle,
  sandbox: SandboxReading,
  pods: readonly PodReading[],
  within: Deadline,
): Promise<Audience> {
  if (ws.state.t === "suspending") return nobody("The workspace was being suspended already");
  if (sandbox.mode === "Suspended") {
    return ws.state.t === "suspended"
      ? nobody("The workspace was suspended already")
      : unreachable("Somebody else suspended the workspace before this call");
  }
  const { state } = ws;
  // The pod that this handle is bound to may have ended, or been replaced: then nobody is to be asked, or the other one.
  const isBound = state.t === "active" && pods.some((pod) => pod.uid === state.bound.pod.uid && !hasEnded(pod));
  const heard = isBound ? await hearBound(state.bound.guest, sandbox, within) : undefined;
  if (heard) return heard;
  using dial = within.within(guestDialTimeoutMs);
  try {
    return await dialOne(ws, sandbox, pods, dial);
  } catch (error) {
    within.throwIfOver();
    return unreachable(wordsOf(error));
  }
}

/**
 * A pooled connection may lead nowhere, and the pod may have another address by now: only a guest that answers now counts as one that can
 * be asked. Undefined: no answer came, so that it must be dialled.
 */
async function hearBound(guest: Guest, sandbox: SandboxReading, within: Deadline): Promise<Audience | undefined> {
  using answer = within.within(guestDialTimeoutMs);
  try {
    const { serving, features } = await guest.health(answer);
    if (!serving) return unreachable("The guest's agent is stopping (agent_retiring)");
    return { t: "guest", ...underStored(guest, sandbox), features, letGo: () => undefined };
  } catch (error) {
    within.throwIfOver();
    return error instanceof HoldfastError ? unreachable(wordsOf(error)) : undefined;
  }
}

function underStored(
  guest: Guest,
  sandbox: SandboxReading,
): Pick<Extract<Audience, { t: "guest" }>, "guest" | "epoch"> {
  const stored = storedEpoch(sandbox);
  const epoch = stored > 0 ? stored : undefined;
  return { guest: guest.under(epoch), epoch };
}

async function dialOne(
  ws: Handle,
  sandbox: SandboxReading,
  pods: readonly PodReading[],
  within: Deadline,
): Promise<Audience> {
  const live = pods.find((pod) => !hasEnded(pod));
  if (!live) return nobody("There was no running guest to ask");
  const pod = bindableOf(pods, ws.left);
  if (!pod) return unreachable(notUsableWords(live));
  const { guest, features } = (await dialGuest(ws, sandbox, pod, within)).bound;
  return { t: "guest", ...underStored(guest, sandbox), features, letGo: () => guest.close() };
}

/** Asks for one thing that needs a feature. Throws nothing: what went wrong is in the outcome. */
export async function askFor<Answer>(
  audience: Extract<Audience, { readonly t: "guest" }>,
  feature: GuestFeature,
  sandbox: SandboxReading,
  ask: (guest: Guest) => Promise<Answer>,
  within: Deadline,
): Promise<Asked<Answer>> {
  if (!audience.features.includes(feature)) return { t: "missing" };
  const { guest } = audience;
  try {
    return { t: "answered", answer: await askFenced(guest, sandbox, ask, within) };
  } catch (error) {
    if (hasReason(error, "GUEST_FEATURE_MISSING")) return { t: "missing" };
    if (hasReason(error, "AGENT_RETIRING")) return unreachable("The guest's agent is stopping (agent_retiring)");
    if (error instanceof GuestNotReached) return unreachable(wordsOf(error));
    return { t: error instanceof HoldfastError ? "refused" : "silent", error };
  }
}

/** A guest that stands below what the object says has not heard of it yet: it is fenced, once, and asked again (L22). */
async function askFenced<Answer>(
  guest: Guest,
  sandbox: SandboxReading,
  ask: (guest: Guest) => Promise<Answer>,
  within: Deadline,
): Promise<Answer> {
  try {
    return await ask(guest);
  } catch (error) {
    if (!hasReason(error, "HOLDER_EPOCH_NOT_TAKEN")) throw error;
    await guest.fence(storedEpoch(sandbox), within);
    return await ask(guest);
  }
}

/** True for an answer by which the guest says that another holder stands: believed only after the object was read again (L22). */
export function speaksOfEpoch(error: unknown): boolean {
  return hasReason(error, "HOLDER_EPOCH_SUPERSEDED", "HOLDER_EPOCH_REQUIRED", "HOLDER_EPOCH_NOT_TAKEN");
}

export function wordsOf(error: unknown): string {
  if (error instanceof DeadlineExceeded) return `The guest did not answer within ${error.budgetMs} ms`;
  return error instanceof Error ? error.message : "The guest did not answer";
}

function notUsableWords({ name, deleting }: PodReading): string {
  return deleting ? `Its pod ${name} was on its way out already` : `Its pod ${name} is not one that can be asked`;
}

function nobody(why: string): Extract<Audience, { readonly t: "nobody" }> {
  return { t: "nobody", why };
}

function unreachable(why: string): { readonly t: "unreachable"; readonly why: string } {
  return { t: "unreachable", why };
}
