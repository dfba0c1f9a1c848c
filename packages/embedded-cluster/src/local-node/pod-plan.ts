import type { KubeObject } from "../resource-api.ts";
import { isRecord, type JsonRecord, numberOf, recordOf, recordsOf, textOf, textsOf } from "./json-shape.ts";
import { type ProbePlan, readProbe } from "./probe-plan.ts";
import { UnsupportedPodError } from "./unsupported-pod-error.ts";

/** Where one volume shows in the container. */
export interface MountPlan {
  readonly volume: string;
  readonly path: string;
  readonly readOnly: boolean;
}

export type VolumePlan =
  | { readonly t: "claim"; readonly name: string; readonly claim: string; readonly readOnly: boolean }
  | { readonly t: "emptyDir"; readonly name: string };

export type EnvPlan =
  | { readonly t: "value"; readonly name: string; readonly value: string }
  | { readonly t: "field"; readonly name: string; readonly path: string };

export type RestartPolicy = "Always" | "OnFailure" | "Never";

/** What this node runs for a pod: one container, its volumes, its probes. */
export interface PodPlan {
  readonly container: string;
  readonly image: string;
  readonly command: readonly string[];
  readonly args: readonly string[];
  readonly workingDir: string;
  readonly env: readonly EnvPlan[];
  readonly volumes: readonly VolumePlan[];
  readonly mounts: readonly MountPlan[];
  readonly readiness: ProbePlan | undefined;
  readonly liveness: ProbePlan | undefined;
  readonly startup: ProbePlan | undefined;
  readonly restartPolicy: RestartPolicy;
  readonly graceMs: number;
}

/** Folders of the pod's root that volumes may not cover or lie in. */
const takenFolders = [
  "/bin",
  "/dev",
  "/etc",
  "/lib",
  "/lib32",
  "/lib64",
  "/libx32",
  "/nix",
  "/opt/holdfast",
  "/proc",
  "/sbin",
];

/** Reads what to run from a pod. Throws UnsupportedPodError naming the member that this node cannot honour. */
export function planPod(pod: KubeObject): PodPlan {
  const spec = recordOf(pod.spec);
  if (recordsOf(spec.initContainers).length > 0) throw new UnsupportedPodError("spec.initContainers is not supported");
  const containers = recordsOf(spec.containers);
  const container = containers[0];
  if (container === undefined || containers.length > 1)
    throw new UnsupportedPodError(`spec.containers must hold exactly one container, not ${containers.length}`);
  if (recordsOf(container.volumeDevices).length > 0)
    throw new UnsupportedPodError("volumeDevices is not supported: this node has no block disks");
  if (recordsOf(container.envFrom).length > 0) throw new UnsupportedPodError("envFrom is not supported");

  const volumes = recordsOf(spec.volumes).map(readVolume);
  const policy = textOf(spec.restartPolicy);
  return {
    container: textOf(container.name) ?? "",
    image: textOf(container.image) ?? "",
    command: textsOf(container.command),
    args: textsOf(container.args),
    workingDir: textOf(container.workingDir) ?? "/",
    env: recordsOf(container.env).map(readEnv),
    volumes,
    mounts: readMounts(recordsOf(container.volumeMounts), volumes),
    readiness: readProbe(container, "readinessProbe"),
    liveness: readProbe(container, "livenessProbe"),
    startup: readProbe(container, "startupProbe"),
    restartPolicy: policy === "OnFailure" || policy === "Never" ? policy : "Always",
    graceMs: Math.max(0, numberOf(spec.terminationGracePeriodSeconds, 30)) * 1000,
  };
}

function readVolume(volume: JsonRecord): VolumePlan {
  const name = textOf(volume.name) ?? "";
  if (!/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(name) || name.length > 63)
    throw new UnsupportedPodError(`volume name ${JSON.stringify(name)} is not a DNS label`);
  const claim = volume.persistentVolumeClaim;
  if (isRecord(claim))
    return { t: "claim", name, claim: textOf(claim.claimName) ?? "", readOnly: claim.readOnly === true };
  if (isRecord(volume.emptyDir)) return { t: "emptyDir", name };
  throw new UnsupportedPodError(`volume ${name} is neither persistentVolumeClaim nor emptyDir`);
}

function readEnv(entry: JsonRecord): EnvPlan {
  const name = textOf(entry.name) ?? "";
  if (name === "" || /[=\0]/.test(name)) throw new UnsupportedPodError(`env name ${JSON.stringify(name)} is not valid`);
  if (entry.valueFrom === undefined || entry.valueFrom === null)
    return { t: "value", name, value: textOf(entry.value) ?? "" };
  const path = textOf(recordOf(recordOf(entry.valueFrom).fieldRef).fieldPath);
  if (path === undefined) throw new UnsupportedPodError(`env ${name}: of valueFrom only fieldRef is supported`);
  return { t: "field", name, path };
}

function readMounts(entries: readonly JsonRecord[], volumes: readonly VolumePlan[]): readonly MountPlan[] {
  const mounts = entries.map((entry) => {
    const mount = {
      volume: textOf(entry.name) ?? "",
      path: textOf(entry.mountPath) ?? "",
      readOnly: entry.readOnly === true,
    };
    assertMountable(mount.path);
    if (textOf(entry.subPath) || textOf(entry.subPathExpr))
      throw new UnsupportedPodError(`the mount at ${mount.path}: subPath is not supported`);
    if (!volumes.some((volume) => volume.name === mount.volume))
      throw new UnsupportedPodError(`the mount at ${mount.path} names no volume of the pod`);
    return mount;
  });
  for (const mount of mounts) {
    const outer = mounts.find((other) => other !== mount && `${mount.path}/`.startsWith(`${other.path}/`));
    // The pod writes in its volumes, symbolic links too; a mount point inside one could lead the node's mount elsewhere.
    if (outer !== undefined)
      throw new UnsupportedPodError(
        `the mount at ${mount.path} lies in the one at ${outer.path}; this is not supported`,
      );
  }
  return mounts;
}

function assertMountable(path: string): void {
  const plain = path.startsWith("/") && path !== "/" && !/[\0\n]/.test(path) && path.length <= 1024;
  if (
    !plain ||
    path
      .split("/")
      .slice(1)
      .some((part) => part === "" || part === "." || part === "..")
  )
    throw new UnsupportedPodError(`mountPath ${JSON.stringify(path)} is not a plain absolute path`);
  const taken = [...takenFolders, "/usr", "/.host"].find((folder) => `${path}/`.startsWith(`${folder}/`));
  if (taken !== undefined) throw new UnsupportedPodError(`mountPath ${path} lies in ${taken}, which is the node's`);
}
