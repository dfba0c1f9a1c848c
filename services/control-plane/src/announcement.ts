import type { EmbeddedCluster } from "@holdfast/embedded-cluster";
import { addressText, type ServiceConfig } from "./config/service-config.ts";
import type { ControlPlane } from "./control-plane.ts";
import { probeVerdictOn } from "./embedded.ts";
import { curlLine } from "./listeners/web/web-listener.ts";

/** What a service says on standard output once it serves; the last line says where it listens. */
export function serviceAnnouncement(service: ControlPlane, config: ServiceConfig, version: string): string {
  const address = addressText(service.address);
  const { embedded } = service;
  const template = config.template === undefined ? ', "template": "NAME"' : "";
  const open = `grpcurl -plaintext -d '{"workspace_id": "hello"${template}}' ${address} holdfast.v1.WorkspaceService/OpenWorkspace`;
  const run = `grpcurl -plaintext -d '{"workspace_id": "hello", "command": "uname", "args": ["-a"]}' ${address} holdfast.v1.ExecutionService/RunCommand`;
  return lines([
    ["", `holdfast ${version}`],
    ["cluster", embedded ? "embedded: for trying and testing, not for production" : "kubernetes"],
    ...(embedded ? [["data", config.dataDir] as const] : []),
    ["kubeconfig", embedded?.kubeconfigPath ?? config.kubeconfig ?? "found by the client"],
    ["namespace", service.namespace],
    ...service.relaxations.map((sentence) => ["relaxed", sentence] as const),
    ...(service.clusterTrouble === undefined
      ? []
      : [
          [
            "trouble",
            `the cluster did not answer; calls are refused until it does: ${service.clusterTrouble}`,
          ] as const,
        ]),
    ["try", open],
    ["", `    ${run}`.trimStart().padStart(run.length + indent)],
    ...(service.webAddress === undefined
      ? []
      : [
          ["web", `http://${addressText(service.webAddress)} (Connect, gRPC-Web, gRPC)`] as const,
          ["", "".padEnd(indent) + curlLine(service.webAddress, template.replaceAll(" ", ""))] as const,
        ]),
    ["", `holdfast listens on ${address}`],
  ]);
}

/** What an embedded cluster that runs alone says; the last line is the command that uses it. */
export function clusterAnnouncement(cluster: EmbeddedCluster, config: ServiceConfig, version: string): string {
  const flags = [
    ["--cluster", "kubernetes"],
    ["--kubeconfig", cluster.kubeconfigPath],
    ["--disk", "filesystem"],
    ["--probe", config.probe ?? probeVerdictOn(cluster)],
    ["--ingress", "unverified"],
    ["--template", config.template ?? "default"],
  ];
  return lines([
    ["", `holdfast ${version}: the embedded cluster alone, for trying and testing`],
    ["data", config.dataDir],
    ["kubeconfig", cluster.kubeconfigPath],
    ["namespace", cluster.namespace],
    ...cluster.relaxations.map((sentence) => ["relaxed", sentence] as const),
    ...(config.allowFaults
      ? [
          [
            "faults",
            "allowed: whoever has the kubeconfig can make this cluster fail (npm run cluster -- faults list)",
          ] as const,
        ]
      : []),
    ["", "to use it:"],
    ["", `npm start -- ${flags.flat().map(quoted).join(" ")}`],
  ]);
}

const indent = 14;

function lines(facts: readonly (readonly [name: string, text: string])[]): string {
  return facts.map(([name, text]) => (name === "" ? `${text}\n` : `  ${name.padEnd(indent - 2)}${text}\n`)).join("");
}

/** As a shell takes it. */
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
