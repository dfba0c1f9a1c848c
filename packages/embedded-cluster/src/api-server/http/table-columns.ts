import { isObject, listIn, objectIn, stringIn, valueAt } from "../../json.ts";
import type { KubeObject } from "../../resource-api.ts";
import type { ResourceType } from "../resource-types.ts";
import { ageOf } from "./age.ts";

/** One column of what `kubectl get` prints. */
export interface Column {
  readonly name: string;
  /** Shown with `-o wide` only. */
  readonly isWide?: boolean;
  readonly cell: (object: KubeObject, now: Date) => string | number;
}

const name: Column = { name: "Name", cell: ({ metadata }) => metadata.name };
const age: Column = { name: "Age", cell: ({ metadata }, now) => ageOf(metadata.creationTimestamp, now) };

const text = (title: string, path: string, otherwise = "<none>"): Column => ({
  name: title,
  cell: (object) => {
    const found = valueAt(object, path);
    return found === undefined || found === "" ? otherwise : String(found);
  },
});

const wide = (column: Column): Column => ({ ...column, isWide: true });

const columns: Record<string, readonly Column[]> = {
  Sandbox: [
    name,
    { name: "Ready", cell: (sandbox) => stringIn(conditionOf(sandbox, "Ready"), "status") ?? "" },
    { name: "Reason", cell: (sandbox) => stringIn(conditionOf(sandbox, "Ready"), "reason") ?? "" },
    age,
  ],
  Pod: [
    name,
    { name: "Ready", cell: podReady },
    { name: "Status", cell: podStatus },
    { name: "Restarts", cell: podRestarts },
    age,
    wide(text("IP", "status.podIP")),
    wide(text("Node", "spec.nodeName")),
  ],
  Service: [
    name,
    text("Type", "spec.type"),
    text("Cluster-IP", "spec.clusterIP"),
    { name: "External-IP", cell: () => "<none>" },
    { name: "Port(s)", cell: servicePorts },
    age,
  ],
  PersistentVolumeClaim: [
    name,
    {
      name: "Status",
      cell: (claim) => (isTerminating(claim) ? "Terminating" : (stringIn(claim.status, "phase") ?? "")),
    },
    text("Volume", "spec.volumeName", ""),
    text("Capacity", "status.capacity.storage", ""),
    { name: "Access Modes", cell: (claim) => listIn(claim.status, "accessModes").map(shortMode).join(",") },
    text("StorageClass", "spec.storageClassName", ""),
    age,
  ],
  Event: [
    {
      name: "Last Seen",
      cell: (event, now) => ageOf(stringIn(event, "lastTimestamp") ?? event.metadata.creationTimestamp, now),
    },
    text("Type", "type", ""),
    text("Reason", "reason", ""),
    { name: "Object", cell: eventObject },
    text("Message", "message", ""),
  ],
  Node: [
    name,
    {
      name: "Status",
      cell: (node) => (stringIn(conditionOf(node, "Ready"), "status") === "True" ? "Ready" : "NotReady"),
    },
    { name: "Roles", cell: () => "<none>" },
    age,
    text("Version", "status.nodeInfo.kubeletVersion", ""),
  ],
  Namespace: [name, text("Status", "status.phase", ""), age],
  Secret: [
    name,
    text("Type", "type", ""),
    { name: "Data", cell: (secret) => Object.keys(objectIn(secret, "data") ?? {}).length },
    age,
  ],
};

/** The columns of a type; a name and an age where it has none of its own. */
export function columnsOf(type: ResourceType): readonly Column[] {
  return columns[type.kind] ?? [name, age];
}

function conditionOf(object: KubeObject, type: string): unknown {
  return listIn(object.status, "conditions").find((item) => stringIn(item, "type") === type);
}

const isTerminating = ({ metadata }: KubeObject): boolean => metadata.deletionTimestamp !== undefined;

function podReady(pod: KubeObject): string {
  const ready = listIn(pod.status, "containerStatuses").filter((item) => isObject(item) && item.ready === true);
  return `${ready.length}/${listIn(pod.spec, "containers").length}`;
}

function podStatus(pod: KubeObject): string {
  if (isTerminating(pod)) return "Terminating";
  for (const container of listIn(pod.status, "containerStatuses")) {
    const reason = valueAt(container, "state.waiting.reason") ?? valueAt(container, "state.terminated.reason");
    if (typeof reason === "string") return reason;
  }
  return stringIn(pod.status, "reason") ?? stringIn(pod.status, "phase") ?? "Unknown";
}

function podRestarts(pod: KubeObject): number {
  const counts = listIn(pod.status, "containerStatuses").map((item) => (isObject(item) ? item.restartCount : 0));
  return counts.reduce<number>((sum, count) => sum + (typeof count === "number" ? count : 0), 0);
}

function servicePorts(service: KubeObject): string {
  const ports = listIn(service.spec, "ports").map(
    (port) => `${String(valueAt(port, "port"))}/${stringIn(port, "protocol")}`,
  );
  return ports.length === 0 ? "<none>" : ports.join(",");
}

function eventObject(event: KubeObject): string {
  const about = objectIn(event, "involvedObject");
  return `${(stringIn(about, "kind") ?? "").toLowerCase()}/${stringIn(about, "name") ?? ""}`;
}

const modes: Record<string, string> = {
  ReadWriteOnce: "RWO",
  ReadOnlyMany: "ROX",
  ReadWriteMany: "RWX",
  ReadWriteOncePod: "RWOP",
};

const shortMode = (mode: unknown): string => modes[String(mode)] ?? String(mode);
