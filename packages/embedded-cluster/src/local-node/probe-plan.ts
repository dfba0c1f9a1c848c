import { isRecord, type JsonRecord, numberOf, recordOf, recordsOf, textOf, textsOf } from "./json-shape.ts";
import { UnsupportedPodError } from "./unsupported-pod-error.ts";

export type ProbeAction =
  | { readonly t: "exec"; readonly command: readonly string[] }
  | { readonly t: "tcp"; readonly port: number }
  | HttpAction;

export interface HttpAction {
  readonly t: "http";
  /** With https the certificate is not looked at, as with a kubelet. */
  readonly scheme: "http" | "https";
  readonly port: number;
  readonly path: string;
  readonly headers: ReadonlyMap<string, string>;
}

/** One probe, with Kubernetes' defaults filled in. */
export interface ProbePlan {
  readonly action: ProbeAction;
  readonly initialDelayMs: number;
  readonly periodMs: number;
  readonly timeoutMs: number;
  readonly successThreshold: number;
  readonly failureThreshold: number;
  /** How long the container gets to end when this probe has it restarted; undefined: as long as the pod says. */
  readonly graceMs: number | undefined;
}

/** Reads a container's probe of that name, undefined where there is none. */
export function readProbe(container: JsonRecord, name: string): ProbePlan | undefined {
  const probe = container[name];
  if (!isRecord(probe)) return undefined;
  const atLeast = (member: string, least: number, otherwise: number) =>
    Math.max(least, numberOf(probe[member], otherwise));
  return {
    action: readAction(probe, container, name),
    initialDelayMs: atLeast("initialDelaySeconds", 0, 0) * 1000,
    periodMs: atLeast("periodSeconds", 1, 10) * 1000,
    timeoutMs: atLeast("timeoutSeconds", 1, 1) * 1000,
    successThreshold: atLeast("successThreshold", 1, 1),
    failureThreshold: atLeast("failureThreshold", 1, 3),
    graceMs:
      typeof probe.terminationGracePeriodSeconds === "number"
        ? atLeast("terminationGracePeriodSeconds", 0, 0) * 1000
        : undefined,
  };
}

function readAction(probe: JsonRecord, container: JsonRecord, name: string): ProbeAction {
  if (isRecord(probe.exec)) {
    const command = textsOf(probe.exec.command);
    if (command.length === 0) throw new UnsupportedPodError(`${name}.exec.command is empty`);
    return { t: "exec", command };
  }
  if (isRecord(probe.tcpSocket)) return { t: "tcp", port: readPort(probe.tcpSocket.port, container, name) };
  if (isRecord(probe.grpc)) throw new UnsupportedPodError(`${name}.grpc is not supported`);
  if (isRecord(probe.httpGet)) {
    const get = probe.httpGet;
    if (textOf(get.host) !== undefined) throw new UnsupportedPodError(`${name}.httpGet.host is not supported`);
    const scheme = textOf(get.scheme) === "HTTPS" ? "https" : "http";
    const path = textOf(get.path) ?? "/";
    if (!/^[\x21-\x7e]*$/.test(path)) throw new UnsupportedPodError(`${name}.httpGet.path is not a URL path`);
    const headers = new Map<string, string>();
    for (const header of recordsOf(get.httpHeaders)) headers.set(textOf(header.name) ?? "", textOf(header.value) ?? "");
    return { t: "http", scheme, port: readPort(get.port, container, name), path, headers };
  }
  throw new UnsupportedPodError(`${name} is neither exec, tcpSocket nor httpGet`);
}

function readPort(port: unknown, container: JsonRecord, name: string): number {
  const named = recordsOf(container.ports).find((entry) => entry.name === port);
  const number = numberOf(named === undefined ? port : recordOf(named).containerPort, 0);
  if (!Number.isInteger(number) || number < 1 || number > 65_535)
    throw new UnsupportedPodError(`${name}: port ${JSON.stringify(port)} is neither a port nor the name of one`);
  return number;
}
