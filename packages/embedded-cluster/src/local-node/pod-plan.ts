import type { KubeObject } from "../resource-api.ts";
import { type ContainerPlan, isLabel, readContainer } from "./container-plan.ts";
import { isRecord, type JsonRecord, numberOf, recordOf, recordsOf, textOf } from "./json-shape.ts";
import { refusePodPrivileges } from "./security-plan.ts";
import { UnsupportedPodError } from "./unsupported-pod-error.ts";

export type VolumePlan =
  | { readonly t: "claim"; readonly name: string; readonly claim: string; readonly readOnly: boolean }
  | { readonly t: "emptyDir"; readonly name: string };

export type RestartPolicy = "Always" | "OnFailure" | "Never";

/** What this node runs for a pod: its containers, after those that prepare it, and its volumes. */
export interface PodPlan {
  /** One after the other, each to its end, before the others start. */
  readonly initContainers: readonly ContainerPlan[];
  readonly containers: readonly ContainerPlan[];
  readonly volumes: readonly VolumePlan[];
  readonly restartPolicy: RestartPolicy;
  readonly graceMs: number;
}

/** Reads what to run from a pod. Throws UnsupportedPodError naming the member that this node cannot honour. */
export function planPod(pod: KubeObject): PodPlan {
  const spec = recordOf(pod.spec);
  refusePodPrivileges(spec);
  if (spec.activeDeadlineSeconds !== undefined && spec.activeDeadlineSeconds !== null)
    throw new UnsupportedPodError("spec.activeDeadlineSeconds is not supported");
  if (recordsOf(spec.readinessGates).length > 0) throw new UnsupportedPodError("spec.readinessGates is not supported");
  if (recordsOf(spec.ephemeralContainers).length > 0)
    throw new UnsupportedPodError("spec.ephemeralContainers is not supported");
  const inits = recordsOf(spec.initContainers);
  if (inits.some((init) => init.restartPolicy !== undefined))
    throw new UnsupportedPodError("spec.initContainers[].restartPolicy (a sidecar) is not supported");
  if (recordsOf(spec.containers).length === 0) throw new UnsupportedPodError("spec.containers is empty");

  const volumes = recordsOf(spec.volumes).map(readVolume);
  const names = volumes.map((volume) => volume.name);
  const read = (container: JsonRecord) => readContainer(container, names);
  const policy = textOf(spec.restartPolicy);
  const plan: PodPlan = {
    initContainers: inits.map(read),
    containers: recordsOf(spec.containers).map(read),
    volumes,
    restartPolicy: policy === "OnFailure" || policy === "Never" ? policy : "Always",
    graceMs: graceMsOf(pod),
  };
  const all = [...plan.initContainers, ...plan.containers].map((container) => container.name);
  if (new Set(all).size < all.length) throw new UnsupportedPodError("two containers of the pod have one name");
  return plan;
}

/** How long a pod's containers get to end. */
export function graceMsOf(pod: KubeObject): number {
  return Math.max(0, numberOf(recordOf(pod.spec).terminationGracePeriodSeconds, 30)) * 1000;
}

/** An emptyDir is a folder of the data directory whatever its medium: one in memory would be lost when the node restarts. */
function readVolume(volume: JsonRecord): VolumePlan {
  const name = textOf(volume.name) ?? "";
  if (!isLabel(name)) throw new UnsupportedPodError(`volume name ${JSON.stringify(name)} is not a DNS label`);
  const claim = volume.persistentVolumeClaim;
  if (isRecord(claim))
    return { t: "claim", name, claim: textOf(claim.claimName) ?? "", readOnly: claim.readOnly === true };
  if (isRecord(volume.emptyDir)) return { t: "emptyDir", name };
  throw new UnsupportedPodError(`volume ${name} is neither persistentVolumeClaim nor emptyDir`);
}
