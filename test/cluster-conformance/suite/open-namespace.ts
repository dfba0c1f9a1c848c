import { setTimeout as delay } from "node:timers/promises";
import type { HttpClient } from "./http-client.ts";
import { at, listAt, textAt } from "./json.ts";
import { resourcePath } from "./resource-paths.ts";
import { mergePatch } from "./stage.ts";

/** A namespace for one run of the suite. */
export interface RunNamespace {
  readonly name: string;
  close(): Promise<void>;
}

/** Makes a namespace; on closing, it goes with all that is left in it. */
export async function openNamespace(client: HttpClient): Promise<RunNamespace> {
  const name = `conformance-${Math.random().toString(36).slice(2, 8)}`;
  const signal = () => AbortSignal.timeout(20_000);
  const body = { metadata: { name } };
  const made = await client.call({ method: "POST", path: resourcePath("", "namespaces"), body }, signal());
  if (made.code !== 201) throw new Error(`the namespace could not be made: ${JSON.stringify(made.body)}`);
  await accountIsThere(client, name);
  return {
    name,
    close: async () => {
      await client.call({ method: "DELETE", path: resourcePath("", "namespaces", name) }, signal());
      // Pods on nobody's node have no kubelet to let them go, and a finalizer of a failed case nobody to take it off.
      for (const plural of ["sandboxes", "pods", "persistentvolumeclaims", "secrets"]) {
        const list = await client.call({ method: "GET", path: resourcePath(name, plural) }, signal());
        for (const item of listAt(list.body, "items")) {
          const path = resourcePath(name, plural, textAt(item, "metadata", "name"));
          await client.call({ method: "DELETE", path, body: { gracePeriodSeconds: 0 } }, signal());
          if (listAt(item, "metadata", "finalizers").length === 0) continue;
          const headers = { "content-type": mergePatch };
          await client.call({ method: "PATCH", path, headers, body: { metadata: { finalizers: null } } }, signal());
        }
      }
    },
  };
}

/** Where pods need their namespace's default account, waits for it; a server without accounts says so. */
async function accountIsThere(client: HttpClient, namespace: string): Promise<void> {
  const limit = AbortSignal.timeout(20_000);
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/default`;
  for (;;) {
    const answer = await client.call({ method: "GET", path }, limit);
    if (answer.code === 200 || !`${at(answer.body, "message")}`.includes('"default" not found')) return;
    await delay(50, undefined, { signal: limit });
  }
}
