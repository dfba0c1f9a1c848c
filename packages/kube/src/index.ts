export { connectKube, type KubeOptions } from "./connect-kube.ts";
export { KubeCluster, type KubeClusterInit } from "./kube-cluster.ts";
export { type ClusterAccess, KubeConfigError, kubeConfigFrom } from "./kube-config.ts";
export type { LogSink } from "./log-sink.ts";
export type { DiskKind } from "./objects/disk.ts";
export type { ApiAnswer } from "./transport/api-answer.ts";
export { NoAnswer } from "./transport/no-answer.ts";
export { type ApiRequest, type ApiStream, type ApiTransport, Transport } from "./transport/transport.ts";
