import { HoldfastError } from "@holdfast/errors";
import type { DiskVerdict, SandboxReading } from "../ports/cluster.ts";
import { workspaceDeleting } from "../refusals.ts";
import type { Handle } from "../state/handle.ts";

/** L11: whether a standing object may be used by this call. Checked before anything is patched; a mismatch wakes nothing. */
export function assertUsable(ws: Handle, reading: SandboxReading, template: string | undefined): void {
  if (reading.deleting) throw workspaceDeleting(ws);
  assertDiskUsable(ws, reading.disk, { source: "Sandbox", name: reading.name });
  if (template !== undefined) assertTemplate(ws, reading, template);
  assertUsableAs(ws, reading, reading.runtimeClassName);
}

/** The template that made it, which must be the named one. Throws WORKSPACE_MISMATCH, also where the object does not say. */
export function assertTemplate(ws: Handle, reading: SandboxReading, named: string | undefined): string {
  const cure = "Open it without naming a template, or open another workspace.";
  if (named !== undefined) assertSame(ws, "template", named, reading.template, cure);
  if (reading.template !== undefined) return reading.template;
  throw mismatch(
    ws,
    "template",
    "one that its pod template names",
    undefined,
    "Resume it without refresh_pod_template.",
  );
}

/** The rest of L11, for the runtime class that it has, or would have once it is refreshed. */
export function assertUsableAs(ws: Handle, reading: SandboxReading, actual: string | undefined): void {
  if (reading.deleting) throw workspaceDeleting(ws);
  const { runtimeClassName } = ws.deps.policy;
  if (runtimeClassName !== undefined) {
    assertSame(ws, "runtimeClassName", runtimeClassName, actual, "Correct the Sandbox, or the service's setting.");
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
  if (actual !== expected) throw mismatch(ws, field, expected, actual, cure);
}

function mismatch(
  ws: Handle,
  field: string,
  expected: string,
  actual: string | undefined,
  cure: string,
): HoldfastError {
  return new HoldfastError("WORKSPACE_MISMATCH", {
    message: `Workspace ${ws.id} stands with another ${field} than it must have (expected ${expected}, found ${actual ?? "none"}). It was not woken and its guest was not dialled. ${cure}`,
    metadata: { field, expected, actual: actual ?? "" },
  });
}
