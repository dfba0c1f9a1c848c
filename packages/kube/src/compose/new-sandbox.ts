import { annotations, podLabels, sandboxNameOf, sandboxResource } from "@holdfast/contract";
import type { CreateWish } from "@holdfast/workspace";
import { isObject, type JsonObject, member } from "../objects/json.ts";
import { Blueprint } from "../objects/template.ts";
import { podTemplateHash } from "./canonical-json.ts";

/** What is laid over a template's pod template. */
export interface PodOverlays {
  readonly template: string;
  readonly runtimeClassName: string | undefined;
}

/** The body of the POST that creates a workspace. No shutdownTime and no shutdownPolicy: they could delete its disk. */
export function composeSandbox(wish: CreateWish, namespace: string, runtimeClassName: string | undefined): JsonObject {
  const { blueprint } = wish.template;
  if (!(blueprint instanceof Blueprint)) throw new TypeError("the template was not read by this package");
  const podTemplate = overlaidPodTemplate(blueprint.podTemplate, { template: wish.template.name, runtimeClassName });
  return {
    apiVersion: `${sandboxResource.group}/${sandboxResource.version}`,
    kind: sandboxResource.kind,
    metadata: {
      name: sandboxNameOf(wish.id),
      namespace,
      annotations: {
        [annotations.podTemplateHash]: podTemplateHash(podTemplate),
        [annotations.createdBy]: wish.createdBy,
        [annotations.writtenBy]: wish.writtenBy,
        ...(wish.epoch === undefined ? {} : { [annotations.holderEpoch]: String(wish.epoch) }),
      },
    },
    spec: {
      podTemplate,
      ...(blueprint.volumeClaimTemplates === undefined ? {} : { volumeClaimTemplates: blueprint.volumeClaimTemplates }),
      operatingMode: "Running",
      service: true,
    },
  };
}

/** A template's pod template as it is written to a Sandbox. */
export function overlaidPodTemplate(podTemplate: JsonObject, overlays: PodOverlays): JsonObject {
  const metadata = objectOr(member(podTemplate, "metadata"));
  const spec = objectOr(member(podTemplate, "spec"));
  return {
    ...podTemplate,
    metadata: { ...metadata, labels: composedPodLabels(objectOr(member(metadata, "labels")), overlays) },
    spec: {
      ...spec,
      // Unset means mounted: a token of the cluster inside a guest that nobody asked for.
      automountServiceAccountToken: member(spec, "automountServiceAccountToken") ?? false,
      ...(overlays.runtimeClassName === undefined ? {} : { runtimeClassName: overlays.runtimeClassName }),
    },
  };
}

/** The one place where a workspace's pod labels are composed: ours override the template's own. */
export function composedPodLabels(own: JsonObject, overlays: PodOverlays): JsonObject {
  return { ...own, [podLabels.template]: overlays.template };
}

function objectOr(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}
