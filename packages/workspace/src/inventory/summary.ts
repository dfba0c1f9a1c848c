import { stampTimeMs, workspaceIdOf } from "@holdfast/contract";
import { holderEpochOf } from "../fence/holder-epoch.ts";
import type { ListedSandbox } from "../ports/cluster.ts";
import type { WorkspaceSummary } from "../view.ts";

/** The summary of an object of the inventory; undefined unless it has the name prefix *and* the template label. */
export function inventorySummaryOf(sandbox: ListedSandbox): WorkspaceSummary | undefined {
  return sandbox.template === undefined ? undefined : summaryOf(sandbox);
}

/** The summary of whatever stands under a workspace's name; undefined for another name. */
export function summaryOf(sandbox: ListedSandbox): WorkspaceSummary | undefined {
  const id = workspaceIdOf(sandbox.name);
  if (id === undefined) return undefined;
  const epoch = holderEpochOf(sandbox.stamps.holderEpoch);
  return {
    id,
    mode: sandbox.mode,
    template: sandbox.template ?? "",
    createdAt: sandbox.createdAt,
    modeChangedAt: dateOf(sandbox.stamps.modeChangedAt),
    holderEpoch: epoch === "unreadable" ? undefined : epoch,
    sandboxUid: sandbox.uid,
  };
}

/** True when nothing that a caller can see differs. */
export function isSameSummary(one: WorkspaceSummary, other: WorkspaceSummary): boolean {
  return (
    one.sandboxUid === other.sandboxUid &&
    one.mode === other.mode &&
    one.template === other.template &&
    one.holderEpoch === other.holderEpoch &&
    one.modeChangedAt?.getTime() === other.modeChangedAt?.getTime() &&
    one.createdAt.getTime() === other.createdAt.getTime()
  );
}

/** A stamp that is no time was not written by this contract: it reads as absent. */
function dateOf(stamp: string | undefined): Date | undefined {
  const ms = stamp === undefined ? undefined : stampTimeMs(stamp);
  return ms === undefined ? undefined : new Date(ms);
}
