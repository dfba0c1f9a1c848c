import { isObject, listIn, stringIn } from "../json.ts";
import type { SandboxSpec } from "./sandbox-spec.ts";

export interface ServicePort {
  readonly name: string;
  readonly protocol: string;
  readonly port: number;
  readonly targetPort: number;
}

interface Wanted {
  readonly port: number;
  readonly protocol: string;
  name: string;
}

/**
 * The Service's ports: those of the containers and of restartable init containers, once for each port and protocol,
 * sorted, named after the container's port or else `p-<port>-<protocol>`.
 */
export function servicePorts(spec: SandboxSpec): ServicePort[] {
  const wanted = new Map<string, Wanted>();
  const taken = new Set<string>();
  const sidecars = listIn(spec.podSpec, "initContainers").filter(
    (item) => stringIn(item, "restartPolicy") === "Always",
  );
  for (const container of [...listIn(spec.podSpec, "containers"), ...sidecars]) {
    for (const port of listIn(container, "ports")) note(port, wanted, taken);
  }
  const sorted = [...wanted.values()].sort((a, b) => a.port - b.port || compare(a.protocol, b.protocol));
  return sorted.map(({ port, protocol, name }) => {
    const given = name === "" ? freeName(`p-${port}-${protocol.toLowerCase()}`, taken) : name;
    taken.add(given);
    return { name: given, protocol, port, targetPort: port };
  });
}

function note(containerPort: unknown, wanted: Map<string, Wanted>, taken: Set<string>): void {
  const port = isObject(containerPort) ? containerPort.containerPort : undefined;
  if (typeof port !== "number" || port === 0) return;
  const protocol = stringIn(containerPort, "protocol") ?? "TCP";
  const name = stringIn(containerPort, "name") ?? "";
  const key = `${port}/${protocol}`;
  const entry = wanted.get(key) ?? { port, protocol, name: "" };
  wanted.set(key, entry);
  if (name === "" || entry.name !== "" || taken.has(name)) return;
  entry.name = name;
  taken.add(name);
}

function freeName(base: string, taken: ReadonlySet<string>): string {
  let name = base;
  for (let suffix = 2; taken.has(name); suffix++) name = `${base}-${suffix}`;
  return name;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
