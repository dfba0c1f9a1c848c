import type { KubeObject } from "../resource-api.ts";
import { createdByLabel, isSystemKey, propagatedAnnotationsAnnotation, propagatedLabelsAnnotation } from "./names.ts";
import { podMetadata } from "./pod-object.ts";
import type { SandboxSpec } from "./sandbox-spec.ts";

type MapPatch = Record<string, string | null>;

/**
 * The merge patch that brings a live pod's labels and annotations to what the template says now, removals included; or
 * undefined. The pod's spec is never touched: a changed template waits for the next pod.
 */
export function podMetadataPatch(
  pod: KubeObject,
  sandbox: KubeObject,
  spec: SandboxSpec,
  hash: string,
): { labels?: MapPatch; annotations?: MapPatch } | undefined {
  const wanted = podMetadata(sandbox, spec, hash);
  const { labels = {}, annotations = {} } = pod.metadata;
  const oldLabels = keysOf(annotations[propagatedLabelsAnnotation]).filter((key) => !isSystemKey(key));
  const oldAnnotations = keysOf(annotations[propagatedAnnotationsAnnotation]).filter((key) => !isSystemKey(key));
  const lists = [propagatedLabelsAnnotation, propagatedAnnotationsAnnotation];
  const labelPatch = difference(labels, wanted.labels, [...oldLabels, createdByLabel]);
  const annotationPatch = difference(annotations, wanted.annotations, [...oldAnnotations, ...lists]);
  if (labelPatch === undefined && annotationPatch === undefined) return undefined;
  return {
    ...(labelPatch === undefined ? {} : { labels: labelPatch }),
    ...(annotationPatch === undefined ? {} : { annotations: annotationPatch }),
  };
}

/** What to set, and which of the `ours` keys to remove. */
function difference(
  present: Record<string, string>,
  wanted: Record<string, string>,
  ours: readonly string[],
): MapPatch | undefined {
  const patch: MapPatch = {};
  for (const [key, value] of Object.entries(wanted)) if (present[key] !== value) patch[key] = value;
  for (const key of ours) if (wanted[key] === undefined && present[key] !== undefined) patch[key] = null;
  return Object.keys(patch).length === 0 ? undefined : patch;
}

function keysOf(list: string | undefined): string[] {
  return (list ?? "").split(",").filter((key) => key !== "");
}
