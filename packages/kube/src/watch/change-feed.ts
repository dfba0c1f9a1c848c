import { Broadcast, type Clock, type Subscription } from "@holdfast/async";
import { sandboxNameHashLabel, sandboxNamePrefix, sandboxResource } from "@holdfast/contract";
import type { LogSink } from "../log-sink.ts";
import { at, elements, textOf } from "../objects/json.ts";
import { pods, sandboxes } from "../resources.ts";
import type { ApiTransport } from "../transport/transport.ts";
import { KindWatch } from "./kind-watch.ts";

export interface ChangeFeedDeps {
  readonly transport: ApiTransport;
  readonly clock: Clock;
  readonly log: LogSink;
  readonly namespace: string;
  readonly requestTimeoutMs: number;
}

/**
 * Wakes whoever waits for a Sandbox, by its name: one watch of Sandboxes and one of their pods, for the whole process, from the
 * first subscription on. It holds no object and says nothing about any: whoever is woken reads again. (L37)
 */
export class ChangeFeed {
  readonly #deps: ChangeFeedDeps;
  readonly #news = new Broadcast<string>();
  readonly #stop = new AbortController();
  #running: Promise<unknown> | undefined;

  constructor(deps: ChangeFeedDeps) {
    this.#deps = deps;
  }

  /** Listens from now on: subscribe, then read. */
  subscribe(sandboxName: string): Subscription {
    const subscription = this.#news.subscribe(sandboxName);
    this.#running ??= Promise.all([
      this.#watch(sandboxes, undefined, sandboxNameOf),
      this.#watch(pods, sandboxNameHashLabel, ownerNameOf),
    ]);
    return subscription;
  }

  /** Ends both watches. Subscriptions stay and are woken no more. */
  async close(): Promise<void> {
    this.#stop.abort(new Error("the change feed is closed"));
    await this.#running;
  }

  #watch(resource: typeof pods, labelSelector: string | undefined, nameOf: (object: unknown) => string | undefined) {
    const watch = new KindWatch({
      ...this.#deps,
      resource,
      labelSelector,
      changed: (object) => {
        const name = nameOf(object);
        if (name?.startsWith(sandboxNamePrefix)) this.#news.wake(name);
      },
      missed: () => this.#news.wakeAll(),
    });
    return watch.run(this.#stop.signal);
  }
}

function sandboxNameOf(object: unknown): string | undefined {
  return textOf(at(object, "metadata", "name"));
}

/** The Sandbox that owns the pod; a pod of another name can be its. */
function ownerNameOf(pod: unknown): string | undefined {
  const owners = elements(at(pod, "metadata", "ownerReferences"));
  const owner = owners.find(
    (one) =>
      at(one, "kind") === sandboxResource.kind &&
      textOf(at(one, "apiVersion"))?.startsWith(`${sandboxResource.group}/`) === true,
  );
  return textOf(at(owner, "name"));
}
