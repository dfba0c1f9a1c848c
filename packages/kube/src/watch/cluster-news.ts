import type { ClusterNews } from "@holdfast/workspace";
import { at, elements, isObject, ObjectUnreadable } from "../objects/json.ts";
import { readPodObject } from "../objects/pod.ts";
import { readListedSandbox } from "../objects/sandbox.ts";
import type { ChangeKind } from "./watch-event.ts";

/** What one event of the Sandboxes' watch says. */
export function sandboxNewsOf(name: string, object: unknown, kind: ChangeKind): ClusterNews {
  return readable(name, () => {
    const { uid, mode, stamps } = readListedSandbox(object);
    const deleting = at(object, "metadata", "deletionTimestamp") !== undefined;
    const happened = ({ ADDED: "added", MODIFIED: "modified", DELETED: "gone" } as const)[kind];
    return { t: "sandbox", name, uid, mode, deleting, holderEpoch: stamps.holderEpoch, happened };
  });
}

/** What one event of their pods' watch says, under the name of the Sandbox that owns the pod. */
export function podNewsOf(name: string, object: unknown, kind: ChangeKind): ClusterNews {
  return readable(name, () => {
    const { uid, node, phase, ready, deleting, restartCount, problem, ip } = readPodObject(object);
    const pod = { uid, node, phase, ready, deleting, restartCount, problem, ip, waits: waits(object) };
    return { t: "pod", name, pod, gone: kind === "DELETED" };
  });
}

function waits(pod: unknown): boolean {
  const main = at(elements(at(pod, "spec", "containers"))[0], "name");
  const container = elements(at(pod, "status", "containerStatuses")).find((entry) => at(entry, "name") === main);
  return isObject(at(container, "state", "waiting"));
}

/** What cannot be read is told as a change of which nothing is known: whoever hears it reads by himself. */
function readable(name: string, read: () => ClusterNews): ClusterNews {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ObjectUnreadable)) throw error;
    return { t: "changed", name };
  }
}
