import { apiVersionOf, type ResourceType, resourceTypes, type Verb } from "../resource-types.ts";

/** The Kubernetes release whose behaviour is copied. */
export const serverVersion = {
  major: "1",
  minor: "32",
  gitVersion: "v1.32.0+holdfast-embedded",
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
  const groups = [...new Set(resourceTypes.map((type) => type.group))].filter((group) => group !== "");
  return { kind: "APIGroupList", apiVersion: "v1", groups: groups.map(groupOf) };
}

export function groupDocument(group: string): unknown {
  return { kind: "APIGroup", apiVersion: "v1", ...groupOf(group) };
}

export function resourceList(group: string, version: string): unknown {
  const types = resourceTypes.filter((type) => type.group === group && type.version === version);
  return {
    kind: "APIResourceList",
    apiVersion: "v1",
    groupVersion: group === "" ? version : `${group}/${version}`,
    resources: types.flatMap(resourcesOf),
  };
}

function groupOf(group: string): { name: string; versions: unknown[]; preferredVersion: unknown } {
  const served = [...new Set(resourceTypes.filter((type) => type.group === group).map(apiVersionOf))];
  const versions = served.map((groupVersion) => ({ groupVersion, version: groupVersion.split("/")[1] }));
  return { name: group, versions, preferredVersion: versions[0] };
}

function resourcesOf(type: ResourceType): unknown[] {
  const { plural, singular, kind, namespaced, shortNames } = type;
  const main = {
    name: plural,
    singularName: singular,
    namespaced,
    kind,
    verbs,
    ...(shortNames.length === 0 ? {} : { shortNames }),
  };
  const binding = { name: "pods/binding", singularName: "", namespaced: true, kind: "Binding", verbs: ["create"] };
  const more = type.kind === "Pod" ? [binding] : [];
  if (!type.hasStatus) return [main, ...more];
  return [
    main,
    ...more,
    { name: `${plural}/status`, singularName: "", namespaced, kind, verbs: ["get", "patch", "update"] },
  ];
}
