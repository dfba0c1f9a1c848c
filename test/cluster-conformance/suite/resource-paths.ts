/** Plural → the path of its group and version. */
const roots: Readonly<Record<string, string>> = {
  pods: "/api/v1",
  services: "/api/v1",
  persistentvolumeclaims: "/api/v1",
  secrets: "/api/v1",
  configmaps: "/api/v1",
  events: "/api/v1",
  namespaces: "/api/v1",
  nodes: "/api/v1",
  networkpolicies: "/apis/networking.k8s.io/v1",
  sandboxes: "/apis/agents.x-k8s.io/v1beta1",
  sandboxtemplates: "/apis/extensions.agents.x-k8s.io/v1beta1",
};

const clusterScoped = new Set(["namespaces", "nodes"]);

/** The path of a collection, an object or a subresource. */
export function resourcePath(namespace: string, plural: string, name?: string, subresource?: string): string {
  const root = roots[plural];
  if (root === undefined) throw new Error(`no path is known for ${plural}`);
  const collection = clusterScoped.has(plural) ? `${root}/${plural}` : `${root}/namespaces/${namespace}/${plural}`;
  return [collection, name, subresource].filter((part) => part !== undefined).join("/");
}

/** The path of a collection over all namespaces. */
export function everywhere(plural: string): string {
  return `${roots[plural] ?? ""}/${plural}`;
}
