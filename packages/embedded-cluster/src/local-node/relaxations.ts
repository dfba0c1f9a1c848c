import { podUser } from "./container-env.ts";
import type { LaunchKit } from "./pod-launch.ts";

/** What is so however pods are kept apart. */
function always(kit: LaunchKit): readonly string[] {
  const { memory, cpu } = kit.groups.enforced;
  const unlimited = [...(cpu ? [] : ["CPU"]), ...(memory ? [] : ["memory"]), "disk size"];
  return [
    "Network policies are not enforced: any process on this machine can reach a pod's address.",
    "Pods share the machine's network: two servers that listen on one port of all addresses collide.",
    `Limits of ${inWords(unlimited)} are not enforced.`,
    `Every container runs as uid ${podUser.uid} without capabilities; another user, groups, seccomp and runtime classes, node selectors and affinities of a pod are not applied.`,
  ];
}

function inWords(words: readonly string[]): string {
  const last = words.at(-1) ?? "";
  return words.length < 2 ? last : `${words.slice(0, -1).join(", ")} and ${last}`;
}

/** What this node does less strictly than a real one: one sentence each. */
export function relaxationsOf(kit: LaunchKit): readonly string[] {
  switch (kit.isolation) {
    case "namespaces":
      return always(kit);
    case "user-namespaces":
      return [`Pods run in user namespaces: outside its pod, a pod's process is ${nodeUser()}.`, ...always(kit)];
    case "none":
      return [
        `The kernel refuses namespaces: pods are plain processes of ${nodeUser()}; they see the machine's files, its processes and each other.`,
        "A pod has no root of its own: paths in its command and variables are replaced by folders of the data directory, and read-only mounts are writable.",
        "A process that leaves its process group and clears its environment may outlive its pod.",
        ...whatIsNotTaken(kit.plainRights),
        ...always(kit),
      ];
  }
}

function nodeUser(): string {
  const uid = process.geteuid?.() ?? 0;
  return uid === 0 ? "the user that runs the node (root)" : `the user that runs the node (uid ${uid})`;
}

function whatIsNotTaken(rights: readonly string[]): string[] {
  if (rights.length === 0)
    return ["Pods keep all rights of that user, and may outlive a killed node until it is started again."];
  return rights.includes("--bounding-set") ? [] : ["The capability bounding set of a pod is not emptied."];
}
