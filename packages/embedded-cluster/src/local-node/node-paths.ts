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
  /** What the node has of each container, a folder by the container's name. */
  containers(uid: string): string {
    return join(this.pod(uid), "containers");
  }
  mountTable(uid: string, container: string): string {
    return join(this.containers(uid), container, "mounts");
  }
  /** Which process tree was last started for the container. */
  processRecord(uid: string, container: string): string {
    return join(this.containers(uid), container, "process.json");
  }
  /** HOME where a pod has no root of its own. */
  home(uid: string, container: string): string {
    return join(this.containers(uid), container, "home");
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
  /** The pods' logs are folders by uid; namespace and name together may be longer than a file's name. */
  podLogs(uid: string): string {
    return join(this.logs, uid);
  }
  log(uid: string, container: string): string {
    return join(this.podLogs(uid), `${container}.log`);
  }
}
