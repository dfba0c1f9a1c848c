import { chown, mkdir } from "node:fs/promises";
import type { Logger } from "pino";
import { isApiStatus, isOfAnother } from "../api-status-error.ts";
import type { KubeObject, ResourceApi } from "../resource-api.ts";
import { writeClaimRecord } from "./claim-record.ts";
import { isDisk } from "./disk-folder.ts";
import { type Isolation, ownerOutside } from "./isolation.ts";
import { recordOf, textOf, textsOf } from "./json-shape.ts";
import type { NodePaths } from "./node-paths.ts";
import { claims, refOf } from "./resources.ts";

/** What became of a claim: it has its disk; its disk is missing; its volume is somebody else's to make. */
export type Binding = "bound" | "lost" | "foreign";

export interface BinderOptions {
  readonly api: ResourceApi;
  readonly paths: NodePaths;
  readonly isolation: Isolation;
  readonly nodeUid: string;
  readonly log: Logger;
}

/**
 * Why a claim is not this node's to provide for; undefined where it is. As with any provisioner: a claim that names a
 * volume waits for that one, and a claim of a class is for whoever provides the class. None at all is this node's.
 */
export function foreignTo(claim: KubeObject): string | undefined {
  const { volumeName, storageClassName } = recordOf(claim.spec);
  const volume = textOf(volumeName) ?? "";
  if (volume !== "" && volume !== volumeNameOf(claim)) return `names the volume ${JSON.stringify(volume)}`;
  if (storageClassName === undefined || storageClassName === null) return undefined;
  return `is of storage class ${JSON.stringify(storageClassName)}`;
}

/**
 * Makes the claim's disk and says so on the claim. The claim is given its volume's name first: there is never a disk
 * beside one that is bound to something else. A lost disk is not replaced by an empty one.
 */
export async function bindClaim(options: BinderOptions, claim: KubeObject, uid: string): Promise<Binding> {
  const { api, paths, isolation, nodeUid, log } = options;
  const wasBound = ["Bound", "Lost"].includes(textOf(recordOf(claim.status).phase) ?? "");
  const exists = await isDisk(paths, uid);
  if (wasBound && exists) return "bound"; // also one that an earlier release gave a disk, whatever it is called
  if (foreignTo(claim) !== undefined) return "foreign";
  if (wasBound) {
    const name = `${claim.metadata.namespace}/${claim.metadata.name}`;
    log.error({ claim: name, uid }, "the disk of a bound claim is missing; it is not replaced by an empty one");
    await patchStatus(api, claim, { phase: "Lost" });
    return "lost";
  }
  if (!(await nameVolume(api, claim))) return "foreign";
  if (!exists) {
    const { namespace = "", name, resourceVersion = "" } = claim.metadata;
    await writeClaimRecord(paths, uid, { namespace, name, store: nodeUid, resourceVersion });
    await mkdir(paths.volume(uid), { mode: 0o700 });
  }
  // Also of one that is there: a node that was killed here may have made it and no more.
  const owner = ownerOutside(isolation);
  await chown(paths.volume(uid), owner.uid, owner.gid);
  const spec = recordOf(claim.spec);
  const capacity = recordOf(recordOf(spec.resources).requests);
  await patchStatus(api, claim, { phase: "Bound", accessModes: textsOf(spec.accessModes), capacity });
  return "bound";
}

/** False where somebody else was first to give the claim a volume, which cannot be changed. */
async function nameVolume(api: ResourceApi, claim: KubeObject): Promise<boolean> {
  if (textOf(recordOf(claim.spec).volumeName) === volumeNameOf(claim)) return true;
  const ref = refOf(claims, claim);
  const body = { metadata: { uid: claim.metadata.uid }, spec: { volumeName: volumeNameOf(claim) } };
  try {
    await api.patch(ref, "application/merge-patch+json", body);
    return true;
  } catch (error) {
    if (isOfAnother(error)) return false; // deleted meanwhile: its end follows
    if (!isApiStatus(error, 422)) throw error;
    const now = await api.get(ref);
    if (now.metadata.uid === claim.metadata.uid && foreignTo(now) === undefined) throw error;
    return false;
  }
}

async function patchStatus(api: ResourceApi, claim: KubeObject, status: object): Promise<void> {
  const body = { metadata: { uid: claim.metadata.uid }, status };
  try {
    await api.patch(refOf(claims, claim), "application/merge-patch+json", body, "status");
  } catch (error) {
    if (!isOfAnother(error)) throw error; // deleted meanwhile: its end follows
  }
}

function volumeNameOf(claim: KubeObject): string {
  return `pvc-${claim.metadata.uid}`;
}
