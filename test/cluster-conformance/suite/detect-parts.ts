import type { Part } from "./conformance-case.ts";
import { at, listAt } from "./json.ts";
import { claimObject, kubeletOf, podObject, sandboxObject, secretObject } from "./objects.ts";
import { Stage, type StageOptions } from "./stage.ts";

/** Finds out by trying which parts the cluster has. */
export async function detectParts(options: StageOptions): Promise<Set<Part>> {
  const probes: readonly [Part, (stage: Stage) => Promise<unknown>][] = [
    ["gc", collectsGarbage],
    ["namespaces", finishesNamespaces],
    ["claim-protection", releasesClaims],
    ["controller", makesPods],
    ["node", hasNode],
  ];
  const found = await Promise.all(
    probes.map(async ([part, probe]) => {
      const stage = new Stage({ ...options, deadlineMs: 20_000 });
      const isThere = await probe(stage).then(
        (answer) => answer !== false,
        () => false,
      );
      await stage.close();
      return isThere ? [part] : [];
    }),
  );
  const compaction: Part[] = options.compact === undefined ? [] : ["compaction"];
  const token: Part[] = options.client.token === undefined ? [] : ["token"];
  return new Set([...found.flat(), ...compaction, ...token]);
}

async function collectsGarbage(stage: Stage): Promise<void> {
  const name = stage.name("orphaned");
  const uid = "00000000-0000-4000-8000-000000000000";
  const owner = { apiVersion: "v1", kind: "Secret", name: stage.name("nobody"), uid };
  await stage.create("secrets", secretObject(name, { ownerReferences: [owner] }));
  await stage.untilGone("secrets", name);
}

async function finishesNamespaces(stage: Stage): Promise<void> {
  const name = stage.name("passing");
  await stage.create("namespaces", { metadata: { name } });
  await stage.do("DELETE", stage.path("namespaces", name));
  await stage.untilGone("namespaces", name);
}

async function releasesClaims(stage: Stage): Promise<void> {
  const name = stage.name("claim");
  const claim = await stage.create("persistentvolumeclaims", claimObject(name));
  if (listAt(claim, "metadata", "finalizers").length === 0) throw new Error("claims are not protected");
  await stage.do("DELETE", stage.path("persistentvolumeclaims", name));
  await stage.untilGone("persistentvolumeclaims", name);
}

async function makesPods(stage: Stage): Promise<void> {
  const name = stage.name("sandbox");
  await stage.create("sandboxes", sandboxObject(name));
  await stage.until("pods", name, (pod) => pod !== undefined, "exist");
  await stage.merge("sandboxes", name, { spec: { operatingMode: "Suspended" } });
  await stage.until("pods", name, (pod) => at(pod, "metadata", "deletionTimestamp") !== undefined, "be deleted");
  await kubeletOf(stage, name).finish();
}

async function hasNode(stage: Stage): Promise<boolean> {
  const name = stage.name("pod");
  const containers = [
    { name: "main", image: stage.image, command: [stage.nodePath, "-e", "setInterval(() => 0, 1e9)"] },
  ];
  await stage.create("pods", podObject(name, { nodeName: undefined, containers, terminationGracePeriodSeconds: 1 }));
  await stage.until("pods", name, (pod) => at(pod, "status", "phase") === "Running", "run");
  return true;
}
