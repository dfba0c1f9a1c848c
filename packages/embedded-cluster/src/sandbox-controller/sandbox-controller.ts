import type { Logger } from "pino";
import { type Clock, systemClock } from "../clock.ts";
import type { KubeObject, ResourceApi } from "../resource-api.ts";
import type { Cluster } from "./children.ts";
import { KeyedQueue } from "./keyed-queue.ts";
import { controllerOf, nameHashLabel, pods, sandboxes, services } from "./names.ts";
import { ObjectCache } from "./object-cache.ts";
import { reconcile } from "./reconcile.ts";

export interface SandboxControllerOptions {
  readonly api: ResourceApi;
  readonly log: Logger;
  readonly now?: () => Date;
  /** What its pauses and retries wait by. */
  readonly clock?: Clock;
}

export interface SandboxController {
  stop(): Promise<void>;
}

/** How many Sandboxes are worked on at once. */
const concurrency = 16;

/**
 * Starts the controller: Sandboxes, and the pods and Services that they control, are followed by watch; claims are not,
 * as in the real one. Resolves when the first lists are in.
 */
export async function startSandboxController(options: SandboxControllerOptions): Promise<SandboxController> {
  const { api, log, clock = systemClock, now = () => new Date(clock.now()) } = options;
  const queue = new KeyedQueue({
    work: (key) => {
      const [namespace = "", name = ""] = key.split("/");
      return reconcile(cluster, namespace, name, now, log);
    },
    concurrency,
    clock,
    onError: (key, error) => log.warn({ err: error, sandbox: key }, "reconcile failed; it is tried again"),
  });
  const onSandbox = ({ metadata }: KubeObject): void => queue.add(`${metadata.namespace ?? ""}/${metadata.name}`);
  const onChild = (child: KubeObject): void => {
    const owner = controllerOf(child);
    const isTracked = child.metadata.labels?.[nameHashLabel] !== undefined;
    if (owner?.kind === "Sandbox" && isTracked) queue.add(`${child.metadata.namespace ?? ""}/${owner.name}`);
  };
  const cluster: Cluster = {
    api,
    sandboxes: new ObjectCache(api, sandboxes, log, onSandbox, clock),
    pods: new ObjectCache(api, pods, log, onChild, clock),
    services: new ObjectCache(api, services, log, onChild, clock),
  };

  const stopping = new AbortController();
  // Children first: a pass that saw a Sandbox but not yet its pod would try to make one that exists.
  const children = [cluster.pods, cluster.services];
  const loops = children.map((cache) => cache.run(stopping.signal));
  await Promise.all(children.map((cache) => cache.synced));
  loops.push(cluster.sandboxes.run(stopping.signal));
  await cluster.sandboxes.synced;

  return {
    stop: async () => {
      stopping.abort();
      await queue.stop();
      await Promise.all(loops);
    },
  };
}
