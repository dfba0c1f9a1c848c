import { isObject, listIn, objectIn, stringIn, valueAt } from "../../json.ts";
import type { KubeObject } from "../../resource-api.ts";
import type { ResourceType } from "../resource-types.ts";
import { ageOf } from "./age.ts";
import { podReady, podRestarts, podStatus } from "./pod-columns.ts";

/** One column of what `kubectl get` prints. */
export interface Column {
  readonly name: string;
  /** `date` of a custom resource's age; else a string. */
  readonly type?: "date";
  /** Shown with `-o wide` only. */
  readonly isWide?: boolean;
  readonly cell: (object: KubeObject, now: Date) => string | number;
}

const name: Column = { name: "Name", cell: ({ metadata }) => metadata.name };
const age: Column = { name: "Age", cell: ({ metadata }, now) => ageOf(metadata.creationTimestamp, now) };

/** A custom resource's column is a date: the cell is still the age. */
const customAge: Column = { ...age, type: "date" };

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
    customAge,
  ],
  SandboxTemplate: [name, customAge],
  Pod: [
    name,
    { name: "Ready", cell: podReady },
    { name: "Status", cell: podStatus },
    { name: "Restarts", cell: podRestarts },
    age,
    wide(text("IP", "status.podIP")),
    wide(text("Node", "spec.nodeName")),
    wide(text("Nominated Node", "status.nominatedNodeName")),
    wide({ name: "Readiness Gates", cell: () => "<none>" }),
  ],
  Service: [
    name,
    text("Type", "spec.type"),
    text("Cluster-IP", "spec.clusterIP"),
    { name: "External-IP", cell: () => "<none>" },
    { name: "Port(s)", cell: servicePorts },
    age,
    wide({ name: "Selector", cell: (service) => labelsText(valueAt(service, "spec.selector")) }),
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
    text("VolumeAttributesClass", "spec.volumeAttributesClassName", "<unset>"),
    age,
    wide(text("VolumeMode", "spec.volumeMode", "<unset>")),
  ],
  Event: [
    { name: "Last Seen", cell: (event, now) => ageOf(timeOf(event, "lastTimestamp"), now) },
    text("Type", "type", ""),
    text("Reason", "reason", ""),
    { name: "Object", cell: eventObject },
    wide(text("Subobject", "involvedObject.fieldPath", "")),
    wide({ name: "Source", cell: eventSource }),
    { name: "Message", cell: (event) => (stringIn(event, "message") ?? "").trim() },
    wide({ name: "First Seen", cell: (event, now) => ageOf(timeOf(event, "firstTimestamp"), now) }),
    wide({ name: "Count", cell: ({ count }) => (typeof count === "number" && count > 0 ? count : 1) }),
    wide(name),
  ],
  Node: [
    name,
    { name: "Status", cell: nodeStatus },
    { name: "Roles", cell: () => "<none>" },
    age,
    text("Version", "status.nodeInfo.kubeletVersion", ""),
    wide({ name: "Internal-IP", cell: (node) => nodeAddress(node, "InternalIP") }),
    wide({ name: "External-IP", cell: (node) => nodeAddress(node, "ExternalIP") }),
    wide(text("OS-Image", "status.nodeInfo.osImage", "<unknown>")),
    wide(text("Kernel-Version", "status.nodeInfo.kernelVersion", "<unknown>")),
    wide(text("Container-Runtime", "status.nodeInfo.containerRuntimeVersion", "<unknown>")),
  ],
  Namespace: [name, text("Status", "status.phase", ""), age],
  NetworkPolicy: [
    name,
    { name: "Pod-Selector", cell: (policy) => labelsText(valueAt(policy, "spec.podSelector.matchLabels")) },
    age,
  ],
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

function eventSource(event: KubeObject): string {
  const source = objectIn(event, "source");
  const component = stringIn(source, "component") ?? stringIn(event, "reportingComponent") ?? "";
  const host = stringIn(source, "host") ?? "";
  return host === "" ? component : `${component}, ${host}`;
}

function timeOf(event: KubeObject, member: string): string | undefined {
  return stringIn(event, member) ?? stringIn(event, "eventTime") ?? event.metadata.creationTimestamp;
}

function nodeStatus(node: KubeObject): string {
  const ready = stringIn(conditionOf(node, "Ready"), "status") === "True" ? "Ready" : "NotReady";
  return valueAt(node, "spec.unschedulable") === true ? `${ready},SchedulingDisabled` : ready;
}

function nodeAddress(node: KubeObject, type: string): string {
  const found = listIn(node.status, "addresses").find((address) => stringIn(address, "type") === type);
  return stringIn(found, "address") ?? "<none>";
}

function labelsText(labels: unknown): string {
  const pairs = isObject(labels) ? Object.entries(labels).map(([key, value]) => `${key}=${String(value)}`) : [];
  return pairs.length === 0 ? "<none>" : pairs.toSorted().join(",");
}

const modes: Record<string, string> = {
  ReadWriteOnce: "RWO",
  ReadOnlyMany: "ROX",
  ReadWriteMany: "RWX",
  ReadWriteOncePod: "RWOP",
};

const shortMode = (mode: unknown): string => modes[String(mode)] ?? String(mode);
