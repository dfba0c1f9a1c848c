import { isApiStatus } from "./api-status-error.ts";
import { defaultTemplate } from "./default-template.ts";
import type { KubeObject, ResourceApi, ResourceRef } from "./resource-api.ts";

const namespaces: ResourceRef = { group: "", version: "v1", plural: "namespaces" };
const templates: ResourceRef = { group: "extensions.agents.x-k8s.io", version: "v1beta1", plural: "sandboxtemplates" };

/** Makes what a new cluster has. What is there already stays as it is, changed or not. */
export async function seed(api: ResourceApi, agentImage: string): Promise<void> {
  for (const name of ["default", "kube-system"]) {
    await createIfAbsent(api, namespaces, { apiVersion: "v1", kind: "Namespace", metadata: { name } });
  }
  await createIfAbsent(api, templates, defaultTemplate(agentImage));
}

async function createIfAbsent(api: ResourceApi, resource: ResourceRef, object: KubeObject): Promise<void> {
  const { name, namespace = "" } = object.metadata;
  try {
    await api.get({ resource, namespace, name });
  } catch (error) {
    if (!isApiStatus(error, 404)) throw error;
    await api.create(resource, namespace, object);
  }
}
