import type { WorkspaceId } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import type { GuestAsks } from "./stop-flights.ts";

/** A joiner wants of the guest what the running stop does not ask of it (L3). Nothing was sent for it. */
export function stopMisses(id: WorkspaceId, what: keyof GuestAsks): HoldfastError {
  return new HoldfastError(what === "flush" ? "FLUSH_UNCONFIRMED" : "QUIESCE_UNCONFIRMED", {
    message: `Workspace ${id} is being suspended already, without a ${what}, so the ${what} that this call wants cannot happen. Nothing was sent for this call. Wait for the suspend, or call again without the ${what}.`,
    metadata: { why: "suspend_already_in_flight" },
  });
}

/** A caller's own time ended: in the queue nothing was sent, later the stop goes on without it. */
export function stopIsLate(
  id: WorkspaceId,
  verb: "suspend" | "delete",
  begun: boolean,
  budgetMs: number,
): HoldfastError {
  const what = begun
    ? `The ${verb} of workspace ${id} goes on; this call's ${budgetMs} ms ended first.`
    : `The ${verb} of workspace ${id} still waits for another transition; this call's ${budgetMs} ms ended first.`;
  return new HoldfastError(verb === "suspend" ? "SUSPEND_UNCONFIRMED" : "DELETE_UNCONFIRMED", {
    message: `${what} Read the workspace, or call again to join it.`,
    metadata: { budget_ms: String(budgetMs), begun: String(begun) },
  });
}
