import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { KubeObject, ResourceApi, ResourceRef } from "@holdfast/embedded-cluster";
import { parse, parseAllDocuments } from "yaml";

const definitions: ResourceRef = {
  group: "apiextensions.k8s.io",
  version: "v1",
  plural: "customresourcedefinitions",
};
const roles: ResourceRef = { group: "rbac.authorization.k8s.io", version: "v1", plural: "clusterroles" };
const roleBindings: ResourceRef = { group: "rbac.authorization.k8s.io", version: "v1", plural: "clusterrolebindings" };

interface Definition extends KubeObject {
  spec: { versions: { name: string; storage: boolean }[]; conversion?: unknown };
}

/**
 * Installs the custom resources of agent-sandbox as a cluster without its conversion webhook must have them: the stored
 * version alone, no conversion. Resolves with their collections' paths.
 */
export async function installDefinitions(api: ResourceApi, folder: string): Promise<string[]> {
  const installed: string[] = [];
  for (const name of readdirSync(join(folder, "crds")).sort()) {
    const definition: Definition = parse(readFileSync(join(folder, "crds", name), "utf8"));
    const { spec } = definition;
    const versions = spec.versions.filter((version) => version.storage);
    await api.create(definitions, "", {
      ...definition,
      spec: { ...spec, versions, conversion: { strategy: "None" } },
    });
    installed.push(definition.metadata.name);
  }
  return installed;
}

/** Resolves when the server serves these definitions. */
export async function awaitEstablished(api: ResourceApi, names: readonly string[], signal: AbortSignal): Promise<void> {
  const missing = new Set(names);
  const { items, resourceVersion } = await api.list(definitions);
  for (const item of items) if (isEstablished(item)) missing.delete(item.metadata.name);
  if (missing.size === 0) return;
  for await (const { object } of api.watch(definitions, resourceVersion, signal)) {
    if (isEstablished(object)) missing.delete(object.metadata.name);
    if (missing.size === 0) return;
  }
  throw new Error(`The server does not serve ${[...missing].join(", ")}`);
}

function isEstablished({ status }: KubeObject): boolean {
  const { conditions } = (status ?? {}) as { conditions?: { type: string; status: string }[] | null };
  return conditions?.some((condition) => condition.type === "Established" && condition.status === "True") ?? false;
}

/** Gives a user the rights that agent-sandbox publishes for its controller, and no more. */
export async function grantControllerRole(api: ResourceApi, folder: string, user: string): Promise<void> {
  const rbac = readFileSync(join(folder, "rbac.yaml"), "utf8");
  for (const document of parseAllDocuments(rbac)) {
    const role: KubeObject | null = document.toJS();
    if (role?.kind !== "ClusterRole") continue;
    await api.create(roles, "", role);
    await api.create(roleBindings, "", {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRoleBinding",
      metadata: { name: role.metadata.name },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: role.metadata.name },
      subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: user }],
    });
  }
}
