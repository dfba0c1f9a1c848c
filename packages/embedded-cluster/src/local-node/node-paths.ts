import { join } from "node:path";

/** Where everything of the node lies below the data directory. */
export class NodePaths {
  readonly #dataDir: string;

  constructor(dataDir: string) {
    this.#dataDir = dataDir;
  }

  /** What every pod of this node shares: the mount point of its root, the skeleton, passwd and group. */
  get node(): string {
    return join(this.#dataDir, "node");
  }
  /** An empty folder. Each pod mounts its root on it, in a mount namespace of its own. */
  get root(): string {
    return join(this.node, "root");
  }
  get skeleton(): string {
    return join(this.node, "skeleton");
  }
  get passwd(): string {
    return join(this.node, "passwd");
  }
  get group(): string {
    return join(this.node, "group");
  }

  get pods(): string {
    return join(this.#dataDir, "pods");
  }
  pod(uid: string): string {
    return join(this.pods, uid);
  }
  mountTable(uid: string): string {
    return join(this.pod(uid), "mounts");
  }
  /** Which process tree was last started for the pod. */
  processRecord(uid: string): string {
    return join(this.pod(uid), "process.json");
  }
  emptyDir(uid: string, volume: string): string {
    return join(this.pod(uid), "volumes", volume);
  }

  get volumes(): string {
    return join(this.#dataDir, "volumes");
  }
  volume(claimUid: string): string {
    return join(this.volumes, claimUid);
  }
  /** What is known of the claim, beside its disk. */
  claimRecord(claimUid: string): string {
    return join(this.volumes, `${claimUid}.claim.json`);
  }
  /** Disks whose claims are gone, on their way out. */
  get trash(): string {
    return join(this.#dataDir, "trash");
  }

  get logs(): string {
    return join(this.#dataDir, "logs");
  }
  log(namespace: string, pod: string, uid: string): string {
    return join(this.logs, `${namespace}_${pod}_${uid}.log`);
  }
}
