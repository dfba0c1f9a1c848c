/** What `main.ts` was asked to be. Every value has been checked; nothing has been opened yet. */
export interface ServiceConfig {
  readonly mode: "serve" | "cluster";
  readonly listen: ListenAddress;
  /** Undefined: no web listener. */
  readonly web: WebConfig | undefined;
  /** Absolute. Used by the embedded cluster only. */
  readonly dataDir: string;
  readonly cluster: "embedded" | "kubernetes";
  /** Absolute; undefined: the client's own search (KUBECONFIG, ~/.kube/config, in-cluster). */
  readonly kubeconfig: string | undefined;
  /** Undefined: the kubeconfig's, else "default". */
  readonly namespace: string | undefined;
  /** The SandboxTemplate of an Open that names none. */
  readonly template: string | undefined;
  /** What a workspace's disk must be. */
  readonly disk: "block" | "filesystem";
  /** What a guest that is not deprivileged means. Undefined: decided by what the embedded node can isolate. */
  readonly probe: "refuse" | "report" | undefined;
  /** Whether the policies that shut others out of a guest must be there. */
  readonly ingress: "verify" | "unverified";
  /** Where a guest is dialled: at its pod's address, or by the name of its Service. */
  readonly agentAddress: "pod-ip" | "service";
  /** Where the bundled guest agent is; used by the embedded cluster only. */
  readonly agentDir: string;
  /** Whether the embedded cluster serves its fault knobs. */
  readonly allowFaults: boolean;
  readonly logLevel: LogLevel;
}

/** The web listener, and whom it answers. */
export interface WebConfig {
  readonly listen: ListenAddress;
  /** Names it answers to besides its own: lower case, IPv6 in brackets. */
  readonly allowHosts: readonly string[];
  /** Origins of other sites whose pages may call, as browsers write them. */
  readonly allowOrigins: readonly string[];
}

export interface ListenAddress {
  /** As it was given: an address or a name; IPv6 without brackets. */
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
}

export const logLevels = ["fatal", "error", "warn", "info", "debug", "trace", "silent"] as const;
export type LogLevel = (typeof logLevels)[number];

/** As a URL would write it: IPv6 in brackets. */
export function addressText({ host, port }: ListenAddress): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}
