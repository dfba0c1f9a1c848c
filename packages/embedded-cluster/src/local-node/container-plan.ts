import { isRecord, type JsonRecord, recordOf, recordsOf, textOf, textsOf } from "./json-shape.ts";
import { type PreStopPlan, readPreStop } from "./pre-stop.ts";
import { type ProbePlan, readProbe } from "./probe-plan.ts";
import { type LimitsPlan, readLimits } from "./quantity.ts";
import { refusePrivileges } from "./security-plan.ts";
import { UnsupportedPodError } from "./unsupported-pod-error.ts";

/** Where one volume shows in a container. */
export interface MountPlan {
  readonly volume: string;
  readonly path: string;
  readonly readOnly: boolean;
}

export type EnvPlan =
  | { readonly t: "value"; readonly name: string; readonly value: string }
  | { readonly t: "field"; readonly name: string; readonly path: string };

/** What this node runs for one container. */
export interface ContainerPlan {
  readonly name: string;
  readonly image: string;
  readonly command: readonly string[];
  readonly args: readonly string[];
  readonly workingDir: string;
  readonly env: readonly EnvPlan[];
  readonly mounts: readonly MountPlan[];
  readonly limits: LimitsPlan;
  readonly readiness: ProbePlan | undefined;
  readonly liveness: ProbePlan | undefined;
  readonly startup: ProbePlan | undefined;
  readonly preStop: PreStopPlan | undefined;
}

/** Folders of the pod's root that volumes may not cover or lie in. */
const takenFolders = [
  "/.host",
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
  "/usr",
];

/** Reads one container. Throws UnsupportedPodError naming the member that this node cannot honour. */
export function readContainer(container: JsonRecord, volumes: readonly string[]): ContainerPlan {
  const name = textOf(container.name) ?? "";
  if (!isLabel(name)) throw new UnsupportedPodError(`container name ${JSON.stringify(name)} is not a DNS label`);
  const of = (member: string) => `container ${name}: ${member}`;
  if (recordsOf(container.volumeDevices).length > 0)
    throw new UnsupportedPodError(of("volumeDevices is not supported: this node has no block disks"));
  if (recordsOf(container.envFrom).length > 0) throw new UnsupportedPodError(of("envFrom is not supported"));
  if (isRecord(recordOf(container.lifecycle).postStart))
    throw new UnsupportedPodError(of("lifecycle.postStart is not supported"));
  refusePrivileges(recordOf(container.securityContext), of("securityContext"));
  return {
    name,
    image: textOf(container.image) ?? "",
    command: textsOf(container.command),
    args: textsOf(container.args),
    workingDir: textOf(container.workingDir) ?? "/",
    env: recordsOf(container.env).map(readEnv),
    mounts: readMounts(recordsOf(container.volumeMounts), volumes),
    limits: readLimits(container, name),
    readiness: readProbe(container, "readinessProbe"),
    liveness: readProbe(container, "livenessProbe"),
    startup: readProbe(container, "startupProbe"),
    preStop: readPreStop(container, name),
  };
}

/** Tells whether a name may be part of a file's name: containers and volumes are. */
export function isLabel(name: string): boolean {
  return /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(name) && name.length <= 63;
}

function readEnv(entry: JsonRecord): EnvPlan {
  const name = textOf(entry.name) ?? "";
  if (name === "" || /[=\0]/.test(name)) throw new UnsupportedPodError(`env name ${JSON.stringify(name)} is not valid`);
  if (entry.valueFrom === undefined || entry.valueFrom === null)
    return { t: "value", name, value: textOf(entry.value) ?? "" };
  const from = recordOf(entry.valueFrom);
  const path = textOf(recordOf(from.fieldRef).fieldPath);
  if (path === undefined)
    throw new UnsupportedPodError(
      `env ${name}: valueFrom.${Object.keys(from).join()} is not supported, only fieldRef is`,
    );
  return { t: "field", name, path };
}

function readMounts(entries: readonly JsonRecord[], volumes: readonly string[]): readonly MountPlan[] {
  const mounts = entries.map((entry) => {
    const mount = {
      volume: textOf(entry.name) ?? "",
      path: textOf(entry.mountPath) ?? "",
      readOnly: entry.readOnly === true,
    };
    assertMountable(mount.path);
    if (textOf(entry.subPath) || textOf(entry.subPathExpr))
      throw new UnsupportedPodError(`the mount at ${mount.path}: subPath is not supported`);
    if (!volumes.includes(mount.volume))
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
  const parts = path.split("/").slice(1);
  if (!plain || parts.some((part) => part === "" || part === "." || part === ".."))
    throw new UnsupportedPodError(`mountPath ${JSON.stringify(path)} is not a plain absolute path`);
  const taken = takenFolders.find((folder) => `${path}/`.startsWith(`${folder}/`));
  if (taken !== undefined) throw new UnsupportedPodError(`mountPath ${path} lies in ${taken}, which is the node's`);
}
