import { isObject, listIn } from "../json.ts";
import type { KubeObject } from "../resource-api.ts";
import {
  controllerReference,
  createdByLabel,
  isSystemKey,
  nameHashLabel,
  propagatedAnnotationsAnnotation,
  propagatedLabelsAnnotation,
} from "./names.ts";
import type { SandboxSpec } from "./sandbox-spec.ts";

/** The pod of a Sandbox as it is created: the template, plus one volume for each claim. */
export function podObject(sandbox: KubeObject, spec: SandboxSpec, hash: string): KubeObject {
  const { labels, annotations } = podMetadata(sandbox, spec, hash);
  const claimed = spec.claimTemplates.map(({ name }) => ({
    name,
    persistentVolumeClaim: { claimName: `${name}-${sandbox.metadata.name}` },
  }));
  const names = new Set(claimed.map((volume) => volume.name));
  const others = listIn(spec.podSpec, "volumes").filter(
    (volume) => !(isObject(volume) && typeof volume.name === "string" && names.has(volume.name)),
  );
  const volumes = [...others, ...claimed];
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: sandbox.metadata.name,
      namespace: sandbox.metadata.namespace ?? "",
      labels,
      annotations,
      ownerReferences: [controllerReference(sandbox)],
    },
    spec: { ...spec.podSpec, ...(volumes.length === 0 ? {} : { volumes }) },
  };
}

/**
 * The labels and annotations that the template and the controller give a pod. Keys of the system are dropped from the
 * template in silence; the Sandbox's own labels are not copied, but for created-by.
 */
export function podMetadata(
  sandbox: KubeObject,
  spec: SandboxSpec,
  hash: string,
): { labels: Record<string, string>; annotations: Record<string, string> } {
  const labels = withoutSystemKeys(spec.podLabels);
  const annotations = withoutSystemKeys(spec.podAnnotations);
  const createdBy = sandbox.metadata.labels?.[createdByLabel];
  return {
    labels: {
      ...labels,
      [nameHashLabel]: hash,
      ...(createdBy === undefined || createdBy === "" ? {} : { [createdByLabel]: knownCreator(createdBy) }),
    },
    annotations: {
      ...annotations,
      ...listOfKeys(propagatedLabelsAnnotation, labels),
      ...listOfKeys(propagatedAnnotationsAnnotation, annotations),
    },
  };
}

const creators = ["go-client", "python-client", "controller"];

function knownCreator(value: string): string {
  return creators.includes(value) ? value : "unknown";
}

function withoutSystemKeys(map: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(map).filter(([key]) => !isSystemKey(key)));
}

function listOfKeys(annotation: string, map: Record<string, string>): Record<string, string> {
  const keys = Object.keys(map).sort();
  return keys.length === 0 ? {} : { [annotation]: keys.join(",") };
}
