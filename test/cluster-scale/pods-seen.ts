import type { KubeObject, ResourceApi } from "@holdfast/embedded-cluster";

const pods = { group: "", version: "v1", plural: "pods" };

/** The pods of a cluster as one watch shows them, and whoever waits for one of them to be so. */
export class PodsSeen {
  readonly #pods = new Map<string, KubeObject>();
  readonly #waiting = new Set<() => void>();
  readonly #stop = new AbortController();
  #following: Promise<void> = Promise.resolve();

  static async start(api: ResourceApi): Promise<PodsSeen> {
    const seen = new PodsSeen();
    const list = await api.list(pods);
    for (const pod of list.items) seen.#pods.set(pod.metadata.name, pod);
    seen.#following = seen.#follow(api, list.resourceVersion);
    return seen;
  }

  /** Resolves when the pod of that name is so; undefined stands for "there is none". */
  until(name: string, isSo: (pod: KubeObject | undefined) => boolean): Promise<void> {
    return new Promise((resolve) => {
      const look = () => {
        if (!isSo(this.#pods.get(name))) return;
        this.#waiting.delete(look);
        resolve();
      };
      this.#waiting.add(look);
      look();
    });
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#following;
  }

  async #follow(api: ResourceApi, from: string): Promise<void> {
    try {
      for await (const { type, object } of api.watch(pods, from, this.#stop.signal)) {
        if (type === "DELETED") this.#pods.delete(object.metadata.name);
        else if (type !== "BOOKMARK") this.#pods.set(object.metadata.name, object);
        for (const look of this.#waiting) look();
      }
    } catch (error) {
      if (!this.#stop.signal.aborted) throw error;
    }
  }
}

export function isReady(pod: KubeObject | undefined): boolean {
  const status = pod?.status as { conditions?: readonly { type: string; status: string }[] } | undefined;
  return (status?.conditions ?? []).some(({ type, status: is }) => type === "Ready" && is === "True");
}
