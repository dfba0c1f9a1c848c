import type { Isolation } from "./isolation.ts";

const always = [
  "Network policies are not enforced: any process on this machine can reach a pod's address.",
  "Pods share the machine's network: two servers that listen on one port of all addresses collide.",
  "Limits of CPU, memory and disk size are not enforced.",
];

const perIsolation: Record<Isolation, readonly string[]> = {
  namespaces: [],
  "user-namespaces": [
    "Pods run in user namespaces of the user that runs the node: outside its pod, an agent's process is that user.",
  ],
  none: [
    "The kernel refuses namespaces: pods are plain processes of the user that runs the node and see its files, its processes and each other.",
    "Pods have no root, user, /tmp or HOME of their own kind: paths in their variables are replaced by folders of the data directory.",
    "Processes that leave their process group may outlive their pod.",
  ],
};

/** What a node of that isolation does less strictly than a real one: one sentence each. */
export function relaxationsOf(isolation: Isolation): readonly string[] {
  return [...perIsolation[isolation], ...always];
}
