import type { EmbeddedCluster } from "@holdfast/embedded-cluster";
import {
  CoreV1Api,
  KubeConfig,
  type KubernetesObject,
  ListWatch,
  makeInformer,
  type V1Secret,
  Watch,
} from "@kubernetes/client-node";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type PlainCluster, startPlainCluster } from "./embedded-target.ts";
import { readAccess } from "./suite/access.ts";
import { HttpClient } from "./suite/http-client.ts";
import { secretObject } from "./suite/objects.ts";
import { resourcePath } from "./suite/resource-paths.ts";
import { mergePatch } from "./suite/stage.ts";

let cluster: EmbeddedCluster;
let plain: PlainCluster;
let config: KubeConfig;
let raw: HttpClient;
let namespace: string;
let rounds = 0;

const patience = { timeout: 30_000 };

beforeAll(async () => {
  plain = await startPlainCluster();
  ({ cluster } = plain);
  config = new KubeConfig();
  config.loadFromFile(cluster.kubeconfigPath);
  raw = new HttpClient(readAccess(cluster.kubeconfigPath));
}, 60_000);

afterAll(async () => {
  raw.close();
  await plain[Symbol.asyncDispose]();
});

beforeEach(async () => {
  rounds += 1;
  namespace = `informers-${rounds}`;
  cluster.faults.clear();
  await send("POST", resourcePath("", "namespaces"), { metadata: { name: namespace } });
});

async function send(method: string, path: string, body?: unknown, type?: string): Promise<void> {
  const headers = type === undefined ? {} : { "content-type": type };
  const answer = await raw.call({ method, path, body, headers }, AbortSignal.timeout(20_000));
  if (answer.code >= 400) throw new Error(`${method} ${path}: ${answer.code} ${JSON.stringify(answer.body)}`);
}

const at = (name?: string): string => resourcePath(namespace, "secrets", name);
const create = (name: string) => send("POST", at(), secretObject(name));
const touch = (name: string, value: string) =>
  send("PATCH", at(name), { metadata: { annotations: { value } } }, mergePatch);
const remove = (name: string) => send("DELETE", at(name));

/** An informer with a log of what it told, that goes on after every error as its users make it go on. */
class Followed {
  /** Name → value, as the events alone tell it. */
  readonly told = new Map<string, string>();
  readonly faults: string[] = [];
  lists = 0;
  watches = 0;
  readonly informer: ListWatch<V1Secret>;
  #isWanted = false;
  readonly #versions = new Map<string, bigint>();

  constructor(query: WatchQuery = {}) {
    const api = config.makeApiClient(CoreV1Api);
    const list = () => {
      this.lists += 1;
      return api.listNamespacedSecret({ namespace });
    };
    const counted = new CountedWatch(config, query, () => {
      this.watches += 1;
    });
    const atOnce = async (): Promise<void> => undefined;
    this.informer = new ListWatch(at(), counted, list, false, undefined, undefined, { delayFn: atOnce });
    this.informer.on("add", (secret) => this.#tell("add", secret));
    this.informer.on("update", (secret) => this.#tell("update", secret));
    this.informer.on("delete", (secret) => this.#tell("delete", secret));
    // A stop is told as an error too.
    this.informer.on("error", () => {
      if (this.#isWanted) void this.informer.start();
    });
  }

  async start(): Promise<void> {
    this.#isWanted = true;
    await this.informer.start();
  }

  async stop(): Promise<void> {
    this.#isWanted = false;
    await this.informer.stop();
  }

  /** Name → value, as the informer's cache has it. */
  cached(): Record<string, string> {
    return byName(this.informer.list(namespace));
  }

  #tell(what: "add" | "update" | "delete", secret: KubernetesObject): void {
    const { name = "", resourceVersion = "0", annotations = {} } = secret.metadata ?? {};
    const isKnown = this.told.has(name);
    if (isKnown === (what === "add")) this.faults.push(`${what} of ${name}, which is ${isKnown ? "" : "not "}known`);
    const version = BigInt(resourceVersion);
    if (what !== "delete" && version <= (this.#versions.get(name) ?? -1n))
      this.faults.push(`${what} of ${name} goes back`);
    this.#versions.set(name, version);
    if (what === "delete") this.told.delete(name);
    else this.told.set(name, annotations.value ?? "");
  }
}

interface WatchQuery {
  readonly timeoutSeconds?: number;
  readonly allowWatchBookmarks?: boolean;
}

class CountedWatch extends Watch {
  readonly #query: WatchQuery;
  readonly #onWatch: () => void;

  constructor(kubeConfig: KubeConfig, query: WatchQuery, onWatch: () => void) {
    super(kubeConfig);
    this.#query = query;
    this.#onWatch = onWatch;
  }

  override watch(...[path, query, onEvent, done]: Parameters<Watch["watch"]>): Promise<AbortController> {
    this.#onWatch();
    return super.watch(path, { ...query, ...this.#query }, onEvent, done);
  }
}

function byName(secrets: readonly KubernetesObject[]): Record<string, string> {
  const entries = secrets.map(({ metadata }) => [metadata?.name ?? "", metadata?.annotations?.value ?? ""]);
  return Object.fromEntries(entries.sort(([a = ""], [b = ""]) => (a < b ? -1 : 1)));
}

async function onServer(): Promise<Record<string, string>> {
  return byName((await config.makeApiClient(CoreV1Api).listNamespacedSecret({ namespace })).items);
}

/** What the events told, what the cache has and what the server has come to be one; and nothing was told wrongly. */
async function comesToAgree(followed: Followed): Promise<void> {
  const truth = await onServer();
  await expect.poll(() => followed.cached(), patience).toEqual(truth);
  expect(Object.fromEntries([...followed.told].sort(([a], [b]) => (a < b ? -1 : 1)))).toEqual(truth);
  expect(followed.faults).toEqual([]);
}

describe("informers of the Kubernetes client on the embedded cluster", () => {
  it("tell what is there, what comes, changes and goes", async () => {
    await create("before");
    const followed = new Followed();
    await followed.start();
    await create("after");
    await touch("before", "1");
    await touch("after", "2");
    await remove("before");
    await comesToAgree(followed);
    expect(followed.lists).toBe(1);
    await followed.stop();
  });

  it("work as makeInformer makes them, on Sandboxes too", async () => {
    const path = resourcePath(namespace, "sandboxes");
    const list = async () => {
      const { body } = await raw.call({ method: "GET", path }, AbortSignal.timeout(10_000));
      return body as unknown as Awaited<ReturnType<Parameters<typeof makeInformer<KubernetesObject>>[2]>>;
    };
    const informer = makeInformer<KubernetesObject>(config, path, list);
    const added: string[] = [];
    informer.on("add", (object) => added.push(object.metadata?.name ?? ""));
    await informer.start();
    const spec = { operatingMode: "Suspended", podTemplate: { spec: { containers: [{ name: "a", image: "x" }] } } };
    await send("POST", path, {
      apiVersion: "agents.x-k8s.io/v1beta1",
      kind: "Sandbox",
      metadata: { name: "one" },
      spec,
    });
    await expect.poll(() => added, patience).toEqual(["one"]);
    await expect.poll(() => JSON.stringify(informer.get("one", namespace)), patience).toContain("PodTerminated");
    await informer.stop();
  });

  it("resume after their connection is cut, without a list, and miss nothing of the gap", async () => {
    const followed = new Followed();
    await followed.start();
    await create("kept");
    await create("gone");
    await expect.poll(() => followed.told.size, patience).toBe(2);
    cluster.faults.dropWatches({ resource: "secrets", namespace });
    await remove("gone");
    await touch("kept", "changed");
    await comesToAgree(followed);
    expect(followed.lists).toBe(1);
    expect(followed.watches).toBeGreaterThan(1);
    await followed.stop();
  });

  it("list again after 410 Expired, and tell deletions of the gap", async () => {
    const followed = new Followed();
    await create("kept");
    await create("gone");
    await followed.start();
    await expect.poll(() => followed.watches, patience).toBe(1);
    await followed.stop();
    await remove("gone");
    await touch("kept", "changed");
    await create("new");
    cluster.compact();
    await followed.start();
    await comesToAgree(followed);
    expect(followed.lists).toBe(2);
    await followed.stop();
  });

  it("stay fresh by bookmarks: a quiet informer resumes past a compaction without a list", async () => {
    const followed = new Followed({ timeoutSeconds: 1, allowWatchBookmarks: true });
    await create("quiet");
    await followed.start();
    // Other kinds move the versions on; the bookmark at the end of each watch carries them.
    const before = BigInt(followed.informer.latestResourceVersion());
    await send("POST", resourcePath("", "namespaces"), { metadata: { name: `${namespace}-other` } });
    const version = () => BigInt(followed.informer.latestResourceVersion());
    await expect.poll(() => version() > before, patience).toBe(true);
    cluster.compact();
    const watches = followed.watches;
    await expect.poll(() => followed.watches, patience).toBeGreaterThan(watches);
    await touch("quiet", "still heard");
    await comesToAgree(followed);
    expect(followed.lists).toBe(1);
    await followed.stop();
  });

  it("agree after thousands of changes, short watches, cut connections and compactions", async () => {
    const followed = new Followed({ timeoutSeconds: 1 });
    await followed.start();
    const names = Array.from({ length: 40 }, (_, index) => `item-${index}`);
    const alive = new Set<string>();
    let state = 20_260_101;
    const random = (below: number): number => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
      return state % below;
    };
    for (let change = 1; change <= 6_000; change++) {
      const name = names[random(names.length)] ?? "";
      if (!alive.has(name)) {
        await create(name);
        alive.add(name);
      } else if (random(4) === 0) {
        await remove(name);
        alive.delete(name);
      } else {
        await touch(name, `${change}`);
      }
      if (change % 250 === 0) cluster.faults.dropWatches({ resource: "secrets", namespace });
      if (change % 400 === 0) cluster.compact();
      if (change % 500 === 0) {
        // Away while history is forgotten: only a list can help.
        await followed.stop();
        await touch([...alive][0] ?? "", `away ${change}`);
        cluster.compact();
        await followed.start();
      }
    }
    await comesToAgree(followed);
    expect(followed.watches).toBeGreaterThan(10);
    expect(followed.lists).toBeGreaterThan(1);
    await followed.stop();
  });
});
