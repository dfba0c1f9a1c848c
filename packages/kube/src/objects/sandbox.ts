import { annotations, podLabels, sandboxUidOf } from "@holdfast/contract";
import type { ListedSandbox, Mode, SandboxReading, Stamps } from "@holdfast/workspace";
import { type DiskKind, diskVerdict } from "./disk.ts";
import {
  at,
  elements,
  integerOf,
  type JsonObject,
  member,
  ObjectUnreadable,
  optionalObject,
  optionalText,
  requireObject,
  requireText,
  textOf,
} from "./json.ts";

/** Reads a Sandbox. Throws ObjectUnreadable where guessing could lose a workspace: identity, versions, mode, annotations. */
export function readSandboxObject(value: unknown, disk: DiskKind): SandboxReading {
  const listed = readListedSandbox(value);
  const object = requireObject(value, "Sandbox");
  const metadata = requireObject(member(object, "metadata"), "metadata");
  const spec = requireObject(member(object, "spec"), "spec");
  const podTemplate = member(spec, "podTemplate");
  const shutdownTime = optionalText(member(spec, "shutdownTime"), "spec.shutdownTime");
  return {
    ...listed,
    resourceVersion: requireText(member(metadata, "resourceVersion"), "metadata.resourceVersion"),
    generation: generationOf(metadata),
    observedGeneration: observedGenerationOf(object),
    lacks: {
      annotations: member(metadata, "annotations") === undefined,
      mode: member(spec, "operatingMode") === undefined,
    },
    deleting: member(metadata, "deletionTimestamp") !== undefined,
    runtimeClassName: textOf(at(podTemplate, "spec", "runtimeClassName")),
    serviceHost: textOf(at(object, "status", "serviceFQDN")),
    disk: diskVerdict(podTemplate, member(spec, "volumeClaimTemplates"), disk),
    claimTemplates: member(spec, "volumeClaimTemplates"),
    shutdown:
      shutdownTime === undefined
        ? undefined
        : { time: shutdownTime, policy: textOf(member(spec, "shutdownPolicy")) ?? "Retain" },
  };
}

/** Reads of a Sandbox what a list tells. Throws ObjectUnreadable as a whole reading does. */
export function readListedSandbox(value: unknown): ListedSandbox {
  const object = requireObject(value, "Sandbox");
  const metadata = requireObject(member(object, "metadata"), "metadata");
  const spec = requireObject(member(object, "spec"), "spec");
  const podTemplate = optionalObject(member(spec, "podTemplate"), "spec.podTemplate");
  const annotationMap = optionalObject(member(metadata, "annotations"), "metadata.annotations");
  return {
    name: requireText(member(metadata, "name"), "metadata.name"),
    uid: sandboxUidOf(requireText(member(metadata, "uid"), "metadata.uid")),
    mode: modeOf(optionalText(member(spec, "operatingMode"), "spec.operatingMode")),
    createdAt: createdAtOf(metadata),
    stamps: stampsOf(annotationMap ?? {}),
    template: textOf(at(podTemplate, "metadata", "labels", podLabels.template)),
  };
}

function modeOf(text: string | undefined): Mode {
  if (text === undefined || text === "Running") return "Running";
  if (text === "Suspended") return "Suspended";
  throw new ObjectUnreadable("spec.operatingMode", "Running or Suspended", text);
}

function generationOf(metadata: JsonObject): number {
  const generation = integerOf(member(metadata, "generation"));
  // Without one, "the controller has observed this generation" would hold before it looked.
  if (generation === undefined)
    throw new ObjectUnreadable("metadata.generation", "a number", member(metadata, "generation"));
  return generation;
}

function observedGenerationOf(object: JsonObject): number {
  const conditions = elements(at(object, "status", "conditions"));
  return conditions.reduce<number>(
    (highest, condition) => Math.max(highest, integerOf(at(condition, "observedGeneration")) ?? 0),
    0,
  );
}

function createdAtOf(metadata: JsonObject): Date {
  const text = requireText(member(metadata, "creationTimestamp"), "metadata.creationTimestamp");
  const createdAt = new Date(text);
  if (Number.isNaN(createdAt.getTime())) throw new ObjectUnreadable("metadata.creationTimestamp", "a time", text);
  return createdAt;
}

function stampsOf(map: JsonObject): Stamps {
  const stamp = (key: string): string | undefined => optionalText(member(map, key), `metadata.annotations[${key}]`);
  return {
    holderEpoch: stamp(annotations.holderEpoch),
    modeChangedAt: stamp(annotations.modeChangedAt),
    podTemplateHash: stamp(annotations.podTemplateHash),
    createdBy: stamp(annotations.createdBy),
    writtenBy: stamp(annotations.writtenBy),
    volumeClaimUids: stamp(annotations.volumeClaimUids),
  };
}
