import { isApiStatus } from "../api-status-error.ts";
import type { KubeObject } from "../resource-api.ts";
import type { Pass } from "./children.ts";
import {
  claims,
  controllerReference,
  isAdoptable,
  nameHashLabel,
  notAdoptable,
  ownedByOther,
  ownershipOf,
  refOf,
} from "./names.ts";
import type { ClaimTemplate, SandboxSpec } from "./sandbox-spec.ts";

/**
 * Makes the claims that the templates ask for. One that was deleted is made again, empty and in silence, at the next
 * pass of any cause: as the real controller does, and what a caller has to guard against.
 */
export async function reconcileClaims(pass: Pass, spec: SandboxSpec): Promise<void> {
  for (const template of spec.claimTemplates) await reconcileClaim(pass, template);
}

async function reconcileClaim(pass: Pass, template: ClaimTemplate): Promise<void> {
  const { sandbox, cluster } = pass;
  const name = `${template.name}-${sandbox.metadata.name}`;
  const namespace = sandbox.metadata.namespace ?? "";
  const found = await cluster.api.get({ resource: claims, namespace, name }).catch((error: unknown) => {
    if (isApiStatus(error, 404)) return undefined;
    throw error;
  });
  if (found === undefined) {
    await cluster.api.create(claims, namespace, claimObject(pass, template, name));
    return;
  }
  await adoptIfUnowned(pass, found);
}

async function adoptIfUnowned(pass: Pass, claim: KubeObject): Promise<void> {
  const ownership = ownershipOf(claim, pass.sandbox);
  if (ownership === "ours") return; // left as it is, even while it is going
  if (ownership === "foreign") throw ownedByOther("PVC", claim, pass.sandbox);
  if (!isAdoptable(claim, pass.hash)) throw notAdoptable("PVC", claim);
  await pass.cluster.api.patch(refOf(claims, claim), "application/merge-patch+json", {
    metadata: { ownerReferences: [...(claim.metadata.ownerReferences ?? []), controllerReference(pass.sandbox)] },
  });
}

function claimObject(pass: Pass, template: ClaimTemplate, name: string): KubeObject {
  return {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: {
      name,
      namespace: pass.sandbox.metadata.namespace ?? "",
      labels: { ...template.labels, [nameHashLabel]: pass.hash },
      annotations: template.annotations,
      ownerReferences: [controllerReference(pass.sandbox)],
    },
    spec: template.spec,
  };
}
