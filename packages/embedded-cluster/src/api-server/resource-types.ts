import type { ResourceRef } from "../resource-api.ts";

export type Verb = "create" | "delete" | "deletecollection" | "get" | "list" | "patch" | "update" | "watch";

/** One served kind: what discovery says of it and which rules of the generic registry apply. */
export interface ResourceType {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly singular: string;
  readonly kind: string;
  readonly shortNames: readonly string[];
  /** Groups of kinds that can be asked for at once, as `all`. */
  readonly categories?: readonly string[];
  /** Whether many may be deleted by one request. */
  readonly deletesCollections?: false;
  readonly namespaced: boolean;
  readonly hasStatus: boolean;
  /** A custom resource: PUT needs a resourceVersion, list items carry their kind. */
  readonly custom: boolean;
  /** Counts spec changes in metadata.generation. */
  readonly hasGeneration: boolean;
  /** A delete that completes answers with the object rather than with a `Status`. */
  readonly returnsDeleted: boolean;
  /** Field selectors besides metadata.name and metadata.namespace. */
  readonly selectableFields: readonly string[];
}

const builtIn = {
  group: "",
  version: "v1",
  namespaced: true,
  hasStatus: false,
  custom: false,
  hasGeneration: false,
  returnsDeleted: false,
  selectableFields: [] as readonly string[],
};

const custom = { namespaced: true, custom: true, hasGeneration: true, returnsDeleted: false, selectableFields: [] };

/** Everything this server serves. Anything else is refused by name. */
export const resourceTypes: readonly ResourceType[] = [
  {
    ...custom,
    group: "agents.x-k8s.io",
    version: "v1beta1",
    plural: "sandboxes",
    singular: "sandbox",
    kind: "Sandbox",
    shortNames: ["sandbox"],
    hasStatus: true,
  },
  {
    ...custom,
    group: "extensions.agents.x-k8s.io",
    version: "v1beta1",
    plural: "sandboxtemplates",
    singular: "sandboxtemplate",
    kind: "SandboxTemplate",
    shortNames: ["sandboxtemplate"],
    hasStatus: false,
  },
  {
    ...builtIn,
    plural: "pods",
    singular: "pod",
    kind: "Pod",
    shortNames: ["po"],
    categories: ["all"],
    hasStatus: true,
    hasGeneration: true,
    returnsDeleted: true,
    selectableFields: ["spec.nodeName", "spec.restartPolicy", "status.phase", "status.podIP"],
  },
  {
    ...builtIn,
    plural: "services",
    singular: "service",
    kind: "Service",
    shortNames: ["svc"],
    categories: ["all"],
    hasStatus: true,
    returnsDeleted: true,
    selectableFields: ["spec.clusterIP", "spec.type"],
  },
  {
    ...builtIn,
    plural: "persistentvolumeclaims",
    singular: "persistentvolumeclaim",
    kind: "PersistentVolumeClaim",
    shortNames: ["pvc"],
    hasStatus: true,
    returnsDeleted: true,
  },
  {
    ...builtIn,
    plural: "events",
    singular: "event",
    kind: "Event",
    shortNames: ["ev"],
    selectableFields: [
      "involvedObject.kind",
      "involvedObject.namespace",
      "involvedObject.name",
      "involvedObject.uid",
      "involvedObject.apiVersion",
      "involvedObject.fieldPath",
      "involvedObject.resourceVersion",
      "reason",
      "reportingComponent",
      "source",
      "type",
    ],
  },
  { ...builtIn, plural: "secrets", singular: "secret", kind: "Secret", shortNames: [], selectableFields: ["type"] },
  {
    ...builtIn,
    plural: "nodes",
    singular: "node",
    kind: "Node",
    shortNames: ["no"],
    namespaced: false,
    hasStatus: true,
    selectableFields: ["spec.unschedulable"],
  },
  {
    ...builtIn,
    plural: "namespaces",
    singular: "namespace",
    kind: "Namespace",
    shortNames: ["ns"],
    deletesCollections: false,
    namespaced: false,
    hasStatus: true,
    returnsDeleted: true,
    selectableFields: ["status.phase"],
  },
  {
    ...builtIn,
    group: "networking.k8s.io",
    plural: "networkpolicies",
    singular: "networkpolicy",
    kind: "NetworkPolicy",
    shortNames: ["netpol"],
    hasGeneration: true,
  },
];

/** Finds a served type, or undefined. */
export function findType(ref: ResourceRef): ResourceType | undefined {
  return resourceTypes.find((t) => t.group === ref.group && t.version === ref.version && t.plural === ref.plural);
}

/** Finds the served type that an owner reference or a body names. */
export function findKind(apiVersion: string, kind: string): ResourceType | undefined {
  return resourceTypes.find((t) => apiVersionOf(t) === apiVersion && t.kind === kind);
}

/** `group/version`, or `v1` for the core group. */
export function apiVersionOf(type: ResourceType): string {
  return type.group === "" ? type.version : `${type.group}/${type.version}`;
}

/** The name under which the store keeps a type; the version is left out, for objects outlive versions. */
export function storageNameOf(type: ResourceType): string {
  return type.group === "" ? type.plural : `${type.group}/${type.plural}`;
}
