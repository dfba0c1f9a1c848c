import type { ResourceRef } from "@holdfast/embedded-cluster/testing";

const core = (plural: string): ResourceRef => ({ group: "", version: "v1", plural });

/** The collections that a workspace is made of. */
export const objectNames = {
  sandboxes: { group: "agents.x-k8s.io", version: "v1beta1", plural: "sandboxes" },
  pods: core("pods"),
  claims: core("persistentvolumeclaims"),
} as const satisfies Record<string, ResourceRef>;
