import { podUser } from "./container-env.ts";

/**
 * How pods are kept apart: in namespaces made as root, in namespaces of an unprivileged user namespace, or not at all
 * (plain children of the node).
 */
export type Isolation = "namespaces" | "user-namespaces" | "none";

const namespaces = ["--mount", "--pid", "--uts", "--ipc"];

const noRights = ["--bounding-set", "-all", "--inh-caps", "-all", "--ambient-caps", "-all", "--no-new-privs"];

/** A change of user clears the parent-death signal, so it is set again after it. */
const dieWithParent = ["--pdeathsig", "SIGKILL"];

/** The command line that runs what follows it as PID 1 of new namespaces, dying with the node. */
export function enterNewNamespaces(isolation: Exclude<Isolation, "none">): readonly string[] {
  const user = isolation === "namespaces" ? [] : ["--user", "--map-root-user"];
  return ["setpriv", ...dieWithParent, "unshare", ...user, ...namespaces, "--fork", "--kill-child", "--"];
}

/** The command line that runs what follows it as the pod's user, without capabilities and unable to gain any. */
export function dropRights(isolation: Exclude<Isolation, "none">): readonly string[] {
  const { uid, gid } = podUser;
  if (isolation === "namespaces")
    return ["setpriv", "--reuid", `${uid}`, "--regid", `${gid}`, "--clear-groups", ...noRights, ...dieWithParent];
  // Only one user is mapped in the first user namespace; a second one inside it gives that user the pod's uid.
  const remap = ["unshare", "--user", `--map-user=${uid}`, `--map-group=${gid}`, "--keep-caps"];
  return [...remap, "setpriv", ...noRights, ...dieWithParent];
}

/**
 * What may be taken from a pod's processes where there are no namespaces, strongest first. The first that works on this
 * machine is used. Only the first two keep a pod from outliving a killed node.
 */
export const plainRights: ReadonlyArray<readonly string[]> = [
  ["setpriv", ...noRights, ...dieWithParent],
  ["setpriv", "--no-new-privs", ...dieWithParent],
  [],
];

/** The command line that runs what follows it inside a running pod, with the node's rights there. */
export function enterPod(
  isolation: Exclude<Isolation, "none">,
  pod: { readonly launcherPid: number; readonly initPid: number },
): readonly string[] {
  if (isolation === "namespaces") return ["nsenter", "--target", `${pod.initPid}`, ...namespaces, "--wd=/", "--"];
  // PID 1 lives in the inner user namespace, which has no rights over the mounts: the launcher lives in the outer one.
  const pidNamespace = `--pid=/proc/${pod.launcherPid}/ns/pid_for_children`;
  const entered = ["--user", "--mount", "--uts", "--ipc", pidNamespace, "--preserve-credentials", "--wd=/"];
  return ["nsenter", "--target", `${pod.launcherPid}`, ...entered, "--"];
}

/** The uid and gid by which the node reaches, outside the pod, what the pod's user owns inside. */
export function ownerOutside(isolation: Isolation): { readonly uid: number; readonly gid: number } {
  if (isolation === "namespaces") return { uid: podUser.uid, gid: podUser.gid };
  return { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 };
}

/** The same as the mount commands of a pod must spell it. */
export function ownerInMounts(isolation: Isolation): { readonly uid: number; readonly gid: number } {
  return isolation === "user-namespaces" ? { uid: 0, gid: 0 } : ownerOutside(isolation);
}

/** The environment of every privileged step: nothing of the pod's own. */
export const trustedEnv = {
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  LC_ALL: "C",
} as const;
