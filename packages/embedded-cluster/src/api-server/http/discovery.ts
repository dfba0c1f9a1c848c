import { apiVersionOf, type ResourceType, resourceTypes, type Verb } from "../resource-types.ts";
import { type ReviewKindSpec, reviewGroups, reviewKinds } from "./review-kinds.ts";

/** The Kubernetes release whose behaviour is copied. */
export const serverVersion = {
  major: "1",
  minor: "36",
  gitVersion: "v1.36.3+holdfast-embedded",
  gitCommit: "",
  gitTreeState: "clean",
  buildDate: "1970-01-01T00:00:00Z",
  goVersion: "",
  compiler: "",
  platform: `${process.platform}/${process.arch}`,
};

const verbs: readonly Verb[] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

export function coreVersions(): unknown {
  return { kind: "APIVersions", versions: ["v1"], serverAddressByClientCIDRs: [] };
}

export function groupList(): unknown {
  const groups = [...new Set([...resourceTypes.map((type) => type.group), ...reviewGroups])].filter(
    (group) => group !== "",
  );
  return { kind: "APIGroupList", apiVersion: "v1", groups: groups.map(groupOf) };
}

export function groupDocument(group: string): unknown {
  return { kind: "APIGroup", apiVersion: "v1", ...groupOf(group) };
}

export function resourceList(group: string, version: string): unknown {
  const types = resourceTypes.filter((type) => type.group === group && type.version === version);
  const reviews = reviewKinds.filter((review) => review.group === group);
  return {
    kind: "APIResourceList",
    ...(group === "" ? {} : { apiVersion: "v1" }), // as the real server, which leaves it out for the core group
    groupVersion: group === "" ? version : `${group}/${version}`,
    resources: [...types.flatMap(resourcesOf), ...reviews.map(reviewResource)],
  };
}

function groupOf(group: string): { name: string; versions: unknown[]; preferredVersion: unknown } {
  const served = reviewGroups.includes(group)
    ? [`${group}/v1`]
    : [...new Set(resourceTypes.filter((type) => type.group === group).map(apiVersionOf))];
  const versions = served.map((groupVersion) => ({ groupVersion, version: groupVersion.split("/")[1] }));
  return { name: group, versions, preferredVersion: versions[0] };
}

function reviewResource({ plural, kind }: ReviewKindSpec): unknown {
  return { name: plural, singularName: kind.toLowerCase(), namespaced: false, kind, verbs: ["create"] };
}

function resourcesOf(type: ResourceType): unknown[] {
  const { plural, singular, kind, namespaced, shortNames } = type;
  const main = {
    name: plural,
    singularName: singular,
    namespaced,
    kind,
    verbs: type.deletesCollections === false ? verbs.filter((verb) => verb !== "deletecollection") : verbs,
    ...(shortNames.length === 0 ? {} : { shortNames }),
    ...(type.categories === undefined ? {} : { categories: type.categories }),
  };
  const binding = { name: "pods/binding", singularName: "", namespaced: true, kind: "Binding", verbs: ["create"] };
  const eviction = {
    name: "pods/eviction",
    singularName: "",
    namespaced: true,
    group: "policy",
    version: "v1",
    kind: "Eviction",
    verbs: ["create"],
  };
  const log = { name: "pods/log", singularName: "", namespaced: true, kind: "Pod", verbs: ["get"] };
  const more = type.kind === "Pod" ? [binding, eviction, log] : [];
  if (!type.hasStatus) return [main, ...more];
  return [
    main,
    ...more,
    { name: `${plural}/status`, singularName: "", namespaced, kind, verbs: ["get", "patch", "update"] },
  ];
}
