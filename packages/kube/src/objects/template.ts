import type { TemplateReading } from "@holdfast/workspace";
import { type DiskKind, diskVerdict } from "./disk.ts";
import { type JsonObject, member, optionalList, optionalObject, requireObject, requireText } from "./json.ts";

/** What a Sandbox is created from: the pod template and the claims of a SandboxTemplate, exactly as they are. */
export class Blueprint {
  readonly podTemplate: JsonObject;
  /** Undefined when the template has none. */
  readonly volumeClaimTemplates: readonly unknown[] | undefined;

  constructor(podTemplate: JsonObject, volumeClaimTemplates: readonly unknown[] | undefined) {
    this.podTemplate = podTemplate;
    this.volumeClaimTemplates = volumeClaimTemplates;
  }
}

/** The blueprint of a template that this package read. */
export function blueprintOf({ blueprint }: Pick<TemplateReading, "blueprint">): Blueprint {
  if (!(blueprint instanceof Blueprint)) throw new TypeError("the template was not read by this package");
  return blueprint;
}

/** A template as it stands; the revision needs what is laid over it, too. */
export interface TemplateObject extends Omit<TemplateReading, "revision" | "blueprint"> {
  readonly blueprint: Blueprint;
}

/** Reads a SandboxTemplate. Throws ObjectUnreadable when it has no pod template. */
export function readTemplateObject(value: unknown, disk: DiskKind): TemplateObject {
  const object = requireObject(value, "SandboxTemplate");
  const metadata = requireObject(member(object, "metadata"), "metadata");
  const spec = requireObject(member(object, "spec"), "spec");
  const podTemplate = requireObject(member(spec, "podTemplate"), "spec.podTemplate");
  requireObject(member(podTemplate, "spec"), "spec.podTemplate.spec");
  const podMetadata = optionalObject(member(podTemplate, "metadata"), "spec.podTemplate.metadata");
  if (podMetadata) optionalObject(member(podMetadata, "labels"), "spec.podTemplate.metadata.labels");
  const claims = member(spec, "volumeClaimTemplates");
  return {
    name: requireText(member(metadata, "name"), "metadata.name"),
    disk: diskVerdict(podTemplate, claims, disk),
    blueprint: new Blueprint(
      podTemplate,
      claims === undefined ? undefined : optionalList(claims, "spec.volumeClaimTemplates"),
    ),
  };
}
