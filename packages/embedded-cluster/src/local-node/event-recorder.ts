import type { Logger } from "pino";
import { isApiStatus } from "../api-status-error.ts";
import type { KubeObject, ResourceApi } from "../resource-api.ts";
import { numberOf, recordOf, textOf } from "./json-shape.ts";
import { events, kubeTime } from "./resources.ts";

/** Tells people what the node did with a pod. May be lost; never awaited. */
export type RecordEvent = (pod: KubeObject, type: "Normal" | "Warning", reason: string, message: string) => void;

interface Known {
  readonly namespace: string;
  readonly name: string;
  count: number;
}

const keptEvents = 500;
const queuedEvents = 200;

/** Writes Events, the same one again as a higher count, and at most a bounded number of them: the oldest go. */
export class EventRecorder {
  readonly #api: ResourceApi;
  readonly #component: string;
  readonly #host: string;
  readonly #log: Logger;
  /** Oldest first, by pod, reason and message. */
  readonly #known = new Map<string, Known>();
  #tail: Promise<void> = Promise.resolve();
  #queued = 0;
  #serial = 0;

  constructor(api: ResourceApi, component: string, host: string, log: Logger) {
    this.#api = api;
    this.#component = component;
    this.#host = host;
    this.#log = log;
    this.#tail = this.#readOwn().catch((error: unknown) => this.#log.warn({ err: error }, "events were not read"));
  }

  readonly record: RecordEvent = (pod, type, reason, message) => {
    if (this.#queued >= queuedEvents) return;
    this.#queued++;
    this.#tail = this.#tail
      .then(() => this.#write(pod, type, reason, message.slice(0, 1024)))
      .catch((error: unknown) => this.#log.debug({ err: error, reason }, "an event was not written"))
      .finally(() => {
        this.#queued--;
      });
  };

  /** Resolves when what was recorded so far is written or given up. */
  idle(): Promise<void> {
    return this.#tail;
  }

  async #write(pod: KubeObject, type: string, reason: string, message: string): Promise<void> {
    const key = `${pod.metadata.uid} ${reason} ${message}`;
    const now = kubeTime(new Date());
    const known = this.#known.get(key);
    if (known !== undefined) {
      const count = known.count + 1;
      const ref = { resource: events, namespace: known.namespace, name: known.name };
      try {
        await this.#api.patch(ref, "application/merge-patch+json", { count, lastTimestamp: now });
        known.count = count;
        return;
      } catch (error) {
        if (!isApiStatus(error, 404)) throw error;
        this.#known.delete(key); // somebody deleted it: a new one begins
      }
    }
    const namespace = pod.metadata.namespace ?? "default";
    const name = `${pod.metadata.name}.${Date.now().toString(16)}${(this.#serial++).toString(16)}`;
    await this.#api.create(events, namespace, {
      apiVersion: "v1",
      kind: "Event",
      metadata: { name, namespace },
      involvedObject: {
        kind: "Pod",
        apiVersion: "v1",
        namespace,
        name: pod.metadata.name,
        uid: pod.metadata.uid,
      },
      type,
      reason,
      message,
      count: 1,
      firstTimestamp: now,
      lastTimestamp: now,
      source: { component: this.#component, host: this.#host },
      reportingComponent: this.#component,
      reportingInstance: this.#host,
    });
    this.#known.set(key, { namespace, name, count: 1 });
    await this.#dropOldest();
  }

  async #dropOldest(): Promise<void> {
    while (this.#known.size > keptEvents) {
      const oldest = this.#known.entries().next().value;
      if (oldest === undefined) return;
      const [key, { namespace, name }] = oldest;
      this.#known.delete(key);
      await this.#api.delete({ resource: events, namespace, name }).catch((error: unknown) => {
        if (!isApiStatus(error, 404)) throw error;
      });
    }
  }

  /** What an earlier life of this node wrote counts against the bound too. */
  async #readOwn(): Promise<void> {
    const { items } = await this.#api.list(events);
    const own = items.filter((item) => textOf(recordOf(item.source).component) === this.#component);
    own.sort((a, b) => (a.metadata.creationTimestamp ?? "").localeCompare(b.metadata.creationTimestamp ?? ""));
    for (const item of own) {
      const uid = textOf(recordOf(item.involvedObject).uid);
      const key = `${uid} ${textOf(item.reason)} ${textOf(item.message)}`;
      const { name, namespace } = item.metadata;
      this.#known.set(key, { namespace: namespace ?? "", name, count: numberOf(item.count, 1) });
    }
    await this.#dropOldest();
  }
}
