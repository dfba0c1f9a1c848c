import { systemClock } from "@holdfast/async";
import type { KubeConfig } from "@kubernetes/client-node";
import { KubeCluster, type KubeClusterInit } from "./kube-cluster.ts";
import { type ClusterAccess, kubeConfigFrom } from "./kube-config.ts";
import { Transport } from "./transport/transport.ts";

export interface KubeOptions extends KubeClusterInit {
  /** How the cluster is reached. Its context's namespace is used where none is named. */
  readonly access: ClusterAccess;
}

/** The cluster that these options name. Nothing is sent yet. Rejects with KubeConfigError when it cannot be reached as configured. */
export async function connectKube(options: KubeOptions): Promise<KubeCluster> {
  const config = kubeConfigFrom(options.access);
  const transport = new Transport(config, options.clock ?? systemClock);
  return new KubeCluster(transport, { ...options, namespace: options.namespace ?? namespaceOf(config) });
}

function namespaceOf(config: KubeConfig): string | undefined {
  const namespace = config.getContextObject(config.getCurrentContext())?.namespace?.trim();
  return namespace === "" ? undefined : namespace;
}
