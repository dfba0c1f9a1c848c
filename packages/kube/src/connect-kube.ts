import { KubeCluster, type KubeClusterInit } from "./kube-cluster.ts";
import { type ClusterAccess, kubeConfigFrom } from "./kube-config.ts";

export interface KubeOptions extends KubeClusterInit {
  /** How the cluster is reached. */
  readonly access: ClusterAccess;
}

/** The cluster that these options name. Nothing is sent yet. Rejects with KubeConfigError when it cannot be reached as configured. */
export async function connectKube(options: KubeOptions): Promise<KubeCluster> {
  return new KubeCluster(kubeConfigFrom(options.access), options);
}
