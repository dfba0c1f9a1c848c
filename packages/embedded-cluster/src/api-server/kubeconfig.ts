import { stringify } from "yaml";

/** The text of a kubeconfig for one server and one bearer token. */
export function kubeconfigText(server: string, caPem: string, token: string): string {
  const name = "holdfast-embedded";
  return stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name, cluster: { server, "certificate-authority-data": Buffer.from(caPem).toString("base64") } }],
    users: [{ name, user: { token } }],
    contexts: [{ name, context: { cluster: name, user: name, namespace: "default" } }],
    "current-context": name,
  });
}
