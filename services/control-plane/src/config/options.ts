import { resolve } from "node:path";
import { listenDefault, webListenDefault, workspaceIdPattern } from "@holdfast/contract";
import { parseListenAddress } from "./listen-address.ts";
import { logLevels } from "./service-config.ts";
import { parseHostNames, parseOrigins } from "./web-names.ts";

/** One setting: a flag, the variable that stands for it, and how its text is read. */
export interface SettingSpec {
  /** As commander writes it, without the dashes of the flag. */
  readonly name: string;
  /** The placeholder in `--help`; absent for a switch. */
  readonly value?: string;
  readonly help: string;
  /** Shown in `--help`. */
  readonly preset?: string;
  /** It may be given more than once; what is read is a list, and the lists are joined. */
  readonly repeatable?: true;
  /** It means something to `cluster` too: the embedded cluster alone. */
  readonly forCluster?: true;
  /** Reads a text, or says what it should have been. */
  readonly read: (text: string) => Reading;
}

export type Reading = { readonly value: unknown } | { readonly wanted: string };

const oneOf =
  (...choices: readonly string[]) =>
  (text: string): Reading =>
    choices.includes(text) ? { value: text } : { wanted: `one of ${choices.join(", ")}` };

const path = (text: string): Reading => (text === "" ? { wanted: "a path" } : { value: resolve(text) });

/** A namespace or template: what the API server takes as a name. */
const objectName = (text: string): Reading =>
  text.length <= 253 && text.split(".").every((label) => label.length <= 63 && workspaceIdPattern.test(label))
    ? { value: text }
    : { wanted: "a Kubernetes name" };

const onOff = (text: string): Reading => {
  if (text === "true" || text === "1") return { value: true };
  if (text === "false" || text === "0") return { value: false };
  return { wanted: "true or false" };
};

/** Every setting of the service, in the order of `--help`. A flag wins over its variable. (docs/operations.md) */
export const settings = [
  {
    name: "listen",
    value: "host:port",
    help: "where gRPC is served",
    preset: listenDefault,
    read: (text: string): Reading => {
      const address = parseListenAddress(text);
      return address ? { value: address } : { wanted: "host:port, as 127.0.0.1:50051 or [::1]:50051" };
    },
  },
  {
    name: "web-listen",
    value: "host:port",
    help: "where Connect, gRPC-Web and gRPC are served for browsers and curl; off: nowhere",
    preset: webListenDefault,
    read: (text: string): Reading => {
      const address = text === "off" ? text : parseListenAddress(text);
      return address ? { value: address } : { wanted: "host:port, as 127.0.0.1:8080, or off" };
    },
  },
  {
    name: "web-allow-host",
    value: "name",
    help: "a name that the web listener answers to, besides localhost and its own address; repeatable, or a,b",
    repeatable: true,
    read: (text: string): Reading => {
      const names = parseHostNames(text);
      return names ? { value: names } : { wanted: "host names, as holdfast.example, without ports" };
    },
  },
  {
    name: "web-allow-origin",
    value: "origin",
    help: "an origin whose pages may call the web listener; repeatable, or a,b",
    preset: "none",
    repeatable: true,
    read: (text: string): Reading => {
      const origins = parseOrigins(text);
      return origins ? { value: origins } : { wanted: "exact origins, as https://console.example:8443" };
    },
  },
  {
    name: "data-dir",
    value: "path",
    help: "objects and disks of the embedded cluster",
    preset: ".holdfast",
    forCluster: true,
    read: path,
  },
  {
    name: "cluster",
    value: "kind",
    help: "embedded: a small Kubernetes in this process; kubernetes: a real one",
    preset: "embedded",
    read: oneOf("embedded", "kubernetes"),
  },
  {
    name: "kubeconfig",
    value: "path",
    help: "for --cluster kubernetes",
    preset: "KUBECONFIG, in-cluster, ~/.kube/config",
    read: path,
  },
  { name: "namespace", value: "name", help: "where workspaces live", preset: "the kubeconfig's", read: objectName },
  {
    name: "template",
    value: "name",
    help: "the SandboxTemplate of an Open that names none",
    preset: '"default" on the embedded cluster, else none',
    forCluster: true,
    read: objectName,
  },
  {
    name: "disk",
    value: "kind",
    help: "what a workspace's disk must be: block or filesystem",
    preset: "block; filesystem on the embedded cluster",
    read: oneOf("block", "filesystem"),
  },
  {
    name: "probe",
    value: "verdict",
    help: "what a guest with privileges means: refuse or report",
    preset: "refuse; report where the embedded node cannot isolate",
    forCluster: true,
    read: oneOf("refuse", "report"),
  },
  {
    name: "ingress",
    value: "check",
    help: "whether policies must shut others out of guests: verify or unverified",
    preset: "verify; unverified on the embedded cluster",
    read: oneOf("verify", "unverified"),
  },
  {
    name: "agent-address",
    value: "mode",
    help: "where a guest is dialled: pod-ip or service (the name of its Service)",
    preset: "pod-ip",
    read: oneOf("pod-ip", "service"),
  },
  {
    name: "agent-dir",
    value: "path",
    help: "the bundled guest agent, for the embedded cluster",
    preset: "services/guest-agent/dist",
    forCluster: true,
    read: path,
  },
  {
    name: "allow-faults",
    help: "serve the fault knobs of the embedded cluster, to try failures (docs/operations.md)",
    forCluster: true,
    read: onOff,
  },
  { name: "insecure", help: "allow a listener that others can reach, without authentication", read: onOff },
  {
    name: "log-level",
    value: "level",
    help: `of the log on stderr: ${logLevels.join(", ")}`,
    preset: "info",
    forCluster: true,
    read: oneOf(...logLevels),
  },
] as const satisfies readonly SettingSpec[];

/** The variable that stands for a flag. */
export function variableOf(name: string): string {
  return `HOLDFAST_${name.toUpperCase().replaceAll("-", "_")}`;
}
