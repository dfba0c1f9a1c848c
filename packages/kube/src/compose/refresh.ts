import type { RefreshedSandbox, SandboxReading, TemplateReading } from "@holdfast/workspace";
import { claimTemplateNames, type DiskKind, diskVerdict } from "../objects/disk.ts";
import { at, type JsonObject, textOf } from "../objects/json.ts";
import { blueprintOf, type TemplateObject } from "../objects/template.ts";
import { podTemplateHash } from "./canonical-json.ts";
import { overlaidPodTemplate } from "./new-sandbox.ts";

/** A template with the hash of its pod template as it would be written (L32). */
export function withRevision(template: TemplateObject, runtimeClassName: string | undefined): TemplateReading {
  return { ...template, revision: podTemplateHash(writtenPodTemplate(template, runtimeClassName)) };
}

/** A template's pod template as a create or a refresh writes it. */
export function writtenPodTemplate(
  template: Pick<TemplateReading, "name" | "blueprint">,
  runtimeClassName: string | undefined,
): JsonObject {
  return overlaidPodTemplate(blueprintOf(template).podTemplate, { template: template.name, runtimeClassName });
}

/** The Sandbox as it would be with the template's pod template: its claims are immutable and stay (L31). */
export function refreshedSandbox(
  sandbox: Pick<SandboxReading, "claimTemplates">,
  template: TemplateReading,
  disk: DiskKind,
  runtimeClassName: string | undefined,
): RefreshedSandbox {
  const podTemplate = writtenPodTemplate(template, runtimeClassName);
  const has = claimTemplateNames(sandbox.claimTemplates);
  const wants = claimTemplateNames(blueprintOf(template).volumeClaimTemplates);
  return {
    disk: diskVerdict(podTemplate, sandbox.claimTemplates, disk),
    runtimeClassName: textOf(at(podTemplate, "spec", "runtimeClassName")),
    extraClaims: wants.filter((name) => !has.includes(name)),
    droppedClaims: has.filter((name) => !wants.includes(name)),
  };
}
