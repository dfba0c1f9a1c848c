import { Broadcast, type Clock, type Subscription } from "@holdfast/async";
import { sandboxNameHashLabel, sandboxNamePrefix, sandboxResource } from "@holdfast/contract";
import type { ClusterNews } from "@holdfast/workspace";
import type { LogSink } from "../log-sink.ts";
import { at, elements, textOf } from "../objects/json.ts";
import { pods, sandboxes } from "../resources.ts";
import type { ApiTransport } from "../transport/transport.ts";
import { podNewsOf, sandboxNewsOf } from "./cluster-news.ts";
import { KindWatch } from "./kind-watch.ts";
import type { ChangeKind } from "./watch-event.ts";

export interface ChangeFeedDeps {
  readonly transport: ApiTransport;
  readonly clock: Clock;
  readonly log: LogSink;
  readonly namespace: string;
  readonly requestTimeoutMs: number;
}

/**
 * Wakes whoever waits for a Sandbox, by its name, and tells listeners of all of them: one watch of Sandboxes and one of their pods, for
 * the whole process, from the first subscription on. It holds no object: whoever is woken or told reads again. (L37)
 */
export class ChangeFeed {
  readonly #deps: ChangeFeedDeps;
  readonly #news = new Broadcast<string>();
  readonly #listeners = new Set<(news: ClusterNews) => void>();
  readonly #stop = new AbortController();
  #running: Promise<unknown> | undefined;

  constructor(deps: ChangeFeedDeps) {
    this.#deps = deps;
  }

  /** Listens from now on: subscribe, then read. */
  subscribe(sandboxName: string): Subscription {
    const subscription = this.#news.subscribe(sandboxName);
    this.#run();
    return subscription;
  }

  /** Tells this listener of every Sandbox from now on. */
  hear(listener: (news: ClusterNews) => void): Disposable {
    this.#listeners.add(listener);
    this.#run();
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  /** Ends both watches. Subscriptions stay and are woken no more. */
  async close(): Promise<void> {
    this.#stop.abort(new Error("the change feed is closed"));
    await this.#running;
  }

  #run(): void {
    this.#running ??= Promise.all([
      this.#watch(sandboxes, undefined, sandboxNameOf, sandboxNewsOf),
      this.#watch(pods, sandboxNameHashLabel, ownerNameOf, podNewsOf),
    ]);
  }

  #watch(
    resource: typeof pods,
    labelSelector: string | undefined,
    nameOf: (object: unknown) => string | undefined,
    newsOf: (name: string, object: unknown, kind: ChangeKind) => ClusterNews,
  ) {
    const watch = new KindWatch({
      ...this.#deps,
      resource,
      labelSelector,
      changed: (object, kind) => {
        const name = nameOf(object);
        if (!name?.startsWith(sandboxNamePrefix)) return;
        this.#news.wake(name);
        if (this.#listeners.size > 0) this.#tell(newsOf(name, object, kind));
      },
      missed: () => {
        this.#news.wakeAll();
        this.#tell({ t: "missed" });
      },
    });
    return watch.run(this.#stop.signal);
  }

  #tell(news: ClusterNews): void {
    for (const listener of [...this.#listeners]) listener(news);
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
