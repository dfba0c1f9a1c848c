import { readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  defaultTemplate,
  guestAgentImage,
  HttpResourceApi,
  type ResourceApi,
  type ResourceRef,
  readKubeconfig,
} from "@holdfast/embedded-cluster";
import { parse, stringify } from "yaml";

/** The cluster to test on, where there is one: otherwise each test starts an embedded one. `npm run test:cluster` gives it. */
export const givenKubeconfig: string | undefined = process.env.HOLDFAST_TEST_KUBECONFIG;

/** A namespace of the given cluster as an embedded one is at its start: empty, with the default template. */
export interface GivenNamespace extends AsyncDisposable {
  readonly name: string;
  /** A kubeconfig whose context is in the namespace. */
  readonly kubeconfigPath: string;
  /** What a service needs to use it. */
  readonly flags: readonly string[];
}

const namespaces: ResourceRef = { group: "", version: "v1", plural: "namespaces" };
const accounts: ResourceRef = { group: "", version: "v1", plural: "serviceaccounts" };
const templates: ResourceRef = { group: "extensions.agents.x-k8s.io", version: "v1beta1", plural: "sandboxtemplates" };
const accountMs = 30_000;

/** Makes a namespace in the cluster, and its kubeconfig in a folder. Disposing deletes it with all that is in it. */
export async function openGivenNamespace(kubeconfig: string, folder: string): Promise<GivenNamespace> {
  const api = new HttpResourceApi(readKubeconfig(kubeconfig));
  const name = `test-${Math.random().toString(36).slice(2, 10)}`;
  await api.create(namespaces, "", { apiVersion: "v1", kind: "Namespace", metadata: { name } });
  const template = defaultTemplate(guestAgentImage);
  await api.create(templates, name, { ...template, metadata: { ...template.metadata, namespace: name } });
  await awaitAccount(api, name);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const kubeconfigPath = join(folder, "kubeconfig");
  await writeFile(kubeconfigPath, within(readFileSync(kubeconfig, "utf8"), name), { mode: 0o600 });
  return {
    name,
    kubeconfigPath,
    flags: [
      ...["--cluster", "kubernetes", "--kubeconfig", kubeconfigPath],
      ...["--disk", "filesystem", "--ingress", "unverified", "--template", "default"],
    ],
    [Symbol.asyncDispose]: async () => {
      await api.delete({ resource: namespaces, namespace: "", name });
      api.close();
    },
  };
}

/** Admission refuses pods until the namespace has its default account, which a controller makes. */
async function awaitAccount(api: ResourceApi, namespace: string): Promise<void> {
  const { items, resourceVersion } = await api.list(accounts, namespace);
  if (items.length > 0) return;
  const limit = AbortSignal.timeout(accountMs);
  for await (const event of api.watch(accounts, resourceVersion, limit, namespace)) if (event.type === "ADDED") return;
  throw new Error(`the namespace ${namespace} got no default account within ${accountMs} ms`);
}

function within(kubeconfig: string, namespace: string): string {
  const config: { contexts: { name: string; context: object }[] } = parse(kubeconfig);
  const contexts = config.contexts.map(({ name, context }) => ({ name, context: { ...context, namespace } }));
  return stringify({ ...config, contexts });
}
