import { isApiStatus } from "../api-status-error.ts";
import type { KubeObject } from "../resource-api.ts";
import type { Pass } from "./children.ts";
import { MultiplePodsError } from "./multiple-pods-error.ts";
import {
  controllerReference,
  isAdoptable,
  notAdoptable,
  ownedByOther,
  ownershipOf,
  podNameAnnotation,
  pods,
  refOf,
} from "./names.ts";
import { podMetadataPatch } from "./pod-metadata-patch.ts";
import { clearPodName, notePodName } from "./pod-name-annotation.ts";
import { podObject } from "./pod-object.ts";
import type { SandboxSpec } from "./sandbox-spec.ts";

/** Brings the pod to what the mode asks for, and returns the pod that was found or made. */
export async function reconcilePod(pass: Pass, spec: SandboxSpec): Promise<KubeObject | undefined> {
  const pod = await findPod(pass);
  if (spec.mode === "Suspended") return suspendPod(pass, pod);
  return pod === undefined ? createPod(pass, spec) : keepPod(pass, spec, pod);
}

/** The one pod whose controller is this Sandbox, whatever its name; else whatever stands under the expected name. */
async function findPod(pass: Pass): Promise<KubeObject | undefined> {
  const { sandbox, cluster } = pass;
  const owned = cluster.pods.controlledBy(sandbox.metadata.uid ?? "");
  if (owned.length > 1) throw new MultiplePodsError(owned.length);
  const noted = sandbox.metadata.annotations?.[podNameAnnotation];
  const name = noted === undefined || noted === "" ? sandbox.metadata.name : noted;
  const named = cluster.pods.get(sandbox.metadata.namespace ?? "", name);
  const [own] = owned;
  if (named === undefined || (own !== undefined && own !== named)) await clearPodName(pass);
  return own ?? named;
}

/** Deletes an owned pod once, with its own grace and without preconditions. A foreign one is left alone. */
async function suspendPod(pass: Pass, pod: KubeObject | undefined): Promise<KubeObject | undefined> {
  if (pod !== undefined && ownershipOf(pod, pass.sandbox) === "ours") {
    if (pod.metadata.deletionTimestamp === undefined) await pass.cluster.api.delete(refOf(pods, pod));
    return pod;
  }
  await clearPodName(pass);
  return pod;
}

// A terminating pod is the pod until it is gone, and one that has ended stays: neither is replaced.
async function keepPod(pass: Pass, spec: SandboxSpec, pod: KubeObject): Promise<KubeObject> {
  const { sandbox, hash, cluster } = pass;
  const ownership = ownershipOf(pod, sandbox);
  if (ownership === "foreign") {
    await clearPodName(pass);
    throw ownedByOther("pod", pod, sandbox);
  }
  if (ownership === "unowned" && !isAdoptable(pod, hash)) throw notAdoptable("pod", pod);
  const adoption =
    ownership === "ours"
      ? {}
      : { ownerReferences: [...(pod.metadata.ownerReferences ?? []), controllerReference(sandbox)] };
  const metadata = { ...adoption, ...podMetadataPatch(pod, sandbox, spec, hash) };
  const isRight = Object.keys(metadata).length === 0;
  const kept = isRight ? pod : await cluster.api.patch(refOf(pods, pod), "application/merge-patch+json", { metadata });
  await notePodName(pass, kept.metadata.name);
  return kept;
}

async function createPod(pass: Pass, spec: SandboxSpec): Promise<KubeObject> {
  const { sandbox, hash, cluster } = pass;
  const namespace = sandbox.metadata.namespace ?? "";
  try {
    const pod = await cluster.api.create(pods, namespace, podObject(sandbox, spec, hash));
    cluster.pods.learn(pod);
    await notePodName(pass, pod.metadata.name);
    return pod;
  } catch (error) {
    if (!isApiStatus(error, 409)) throw error;
    const existing = await cluster.api.get({ resource: pods, namespace, name: sandbox.metadata.name });
    return keepPod(pass, spec, existing);
  }
}
