import type { Deadline } from "@holdfast/async";
import { HoldfastError, hasReason } from "@holdfast/errors";
import { assertDiskUsable, assertTemplate, assertUsable, assertUsableAs } from "../fence/standing.ts";
import type { RefreshedSandbox, SandboxReading, TemplateReading } from "../ports/cluster.ts";
import type { Handle } from "../state/handle.ts";

/** True where the call would write another pod template before the workspace runs: then that one is judged, and not the standing one. */
export function refreshes({ refreshPodTemplate }: Refreshing, sandbox: SandboxReading): boolean {
  return refreshPodTemplate === true && sandbox.mode === "Suspended";
}

interface Refreshing {
  readonly refreshPodTemplate?: boolean | undefined;
}

/** L11 on the workspace as this call would use it: as it stands, or as a refresh would write it. Returns the template to write, if any. */
export async function assertUsableOrRefresh(
  ws: Handle,
  sandbox: SandboxReading,
  wish: Refreshing,
  named: string | undefined,
  within: Deadline,
): Promise<TemplateReading | undefined> {
  if (refreshes(wish, sandbox)) return await templateToRefresh(ws, sandbox, named, within);
  assertUsable(ws, sandbox, named);
  return undefined;
}

/**
 * L31: the template to wake a Suspended workspace with. Refuses, before anything is sent, what would not be usable as it would be
 * written: the standing object's own disk and runtime class do not count, since both go with its pod template.
 */
async function templateToRefresh(
  ws: Handle,
  sandbox: SandboxReading,
  named: string | undefined,
  within: Deadline,
): Promise<TemplateReading> {
  const name = assertTemplate(ws, sandbox, named);
  const template = await readTemplate(ws, name, within);
  const refreshed = ws.deps.cluster.refreshed(sandbox, template);
  assertSameClaims(ws, template, refreshed);
  assertDiskUsable(ws, refreshed.disk, { source: "SandboxTemplate", name });
  assertUsableAs(ws, sandbox, refreshed.runtimeClassName);
  return template;
}

/**
 * Keeps the revision of the workspace's template, so that callers see whether theirs is current (L32). Never rejects: without it
 * the revision is not called current.
 */
export async function noteTemplate(ws: Handle, name: string | undefined, within: Deadline): Promise<void> {
  if (name === undefined) return;
  try {
    await readTemplate(ws, name, within);
  } catch (error) {
    if (hasReason(error, "WORKSPACE_NOT_FOUND")) ws.templateRevision = undefined;
    ws.deps.log.info({ workspaceId: ws.id, template: name, error }, "the template could not be read for its revision");
  }
}

async function readTemplate(ws: Handle, name: string, within: Deadline): Promise<TemplateReading> {
  const template = await ws.deps.cluster.readTemplate(name, within);
  ws.templateRevision = template.revision;
  return template;
}

/** A Sandbox's claims are immutable: a pod that uses another disk would never start, one that is dropped would no longer be used. */
function assertSameClaims(
  ws: Handle,
  template: TemplateReading,
  { extraClaims, droppedClaims }: RefreshedSandbox,
): void {
  if (extraClaims.length === 0 && droppedClaims.length === 0) return;
  const words = [
    extraClaims.length > 0 ? `it claims ${extraClaims.join(", ")}, which the workspace does not have` : "",
    droppedClaims.length > 0 ? `it does not claim ${droppedClaims.join(", ")}, which the workspace has` : "",
  ].filter((part) => part !== "");
  throw new HoldfastError("WORKSPACE_DISK_UNUSABLE", {
    message: `SandboxTemplate ${template.name} cannot refresh workspace ${ws.id}: ${words.join("; ")}. A workspace keeps the disks that it was made with. Nothing was woken. Resume it without refresh_pod_template, or correct the template.`,
    metadata: {
      source: "SandboxTemplate",
      name: template.name,
      claims: [...extraClaims, ...droppedClaims].join(","),
      extra: extraClaims.join(","),
      dropped: droppedClaims.join(","),
    },
  });
}
