import { HoldfastError } from "@holdfast/errors";
import type { DiskVerdict, SandboxReading } from "../ports/cluster.ts";
import { workspaceDeleting } from "../refusals.ts";
import type { Handle } from "../state/handle.ts";

/** L11: whether a standing object may be used by this call. Checked before anything is patched; a mismatch wakes nothing. */
export function assertUsable(ws: Handle, reading: SandboxReading, template: string | undefined): void {
  if (reading.deleting) throw workspaceDeleting(ws);
  assertDiskUsable(ws, reading.disk, { source: "Sandbox", name: reading.name });
  if (template !== undefined) {
    assertSame(
      ws,
      "template",
      template,
      reading.template,
      "Open it without naming a template, or open another workspace.",
    );
  }
  const { runtimeClassName } = ws.deps.policy;
  if (runtimeClassName !== undefined) {
    assertSame(
      ws,
      "runtimeClassName",
      runtimeClassName,
      reading.runtimeClassName,
      "Correct the Sandbox, or the service's setting.",
    );
  }
  if (reading.shutdown) {
    ws.deps.log.warn(
      { workspaceId: ws.id, ...reading.shutdown },
      "this workspace carries a shutdownTime: the cluster may end it, and delete its disk, by itself",
    );
  }
}

/** L10. */
export function assertDiskUsable(
  ws: Handle,
  disk: DiskVerdict,
  at: { readonly source: "Sandbox" | "SandboxTemplate"; readonly name: string },
): void {
  if (disk.usable) return;
  throw new HoldfastError("WORKSPACE_DISK_UNUSABLE", {
    message: `${at.source} ${at.name} has no disk that can hold workspace ${ws.id}: ${disk.why}. Nothing was created or woken. Correct the ${at.source} (volumes are expected as ${ws.deps.policy.disk}).`,
    metadata: { source: at.source, name: at.name, claims: disk.claims.join(","), expected: ws.deps.policy.disk },
  });
}

/** Refuses to create, adopt or wake while nothing has verified who can reach the agent's port. */
export function assertIngressSettled(ws: Handle): void {
  if (ws.deps.policy.ingress === "unverified") return;
  throw new HoldfastError("INGRESS_UNVERIFIED", {
    message: `Workspace ${ws.id} was not created, adopted or woken: this release cannot verify that only the service reaches the agent's port. Start the service with --ingress unverified where the port is closed by other means.`,
    metadata: { setting: "--ingress unverified" },
  });
}

function assertSame(ws: Handle, field: string, expected: string, actual: string | undefined, cure: string): void {
  if (actual === expected) return;
  throw new HoldfastError("WORKSPACE_MISMATCH", {
    message: `Workspace ${ws.id} stands with another ${field} than it must have (expected ${expected}, found ${actual ?? "none"}). It was not woken and its guest was not dialled. ${cure}`,
    metadata: { field, expected, actual: actual ?? "" },
  });
}
