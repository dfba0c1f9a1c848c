import { pino } from "pino";
import { describe, expect, it } from "vitest";
import { ApiStatusError } from "../api-status-error.ts";
import type { KubeObject, ResourceApi, WatchEvent } from "../resource-api.ts";
import { ObjectCache } from "./object-cache.ts";

const resource = { group: "", version: "v1", plural: "pods" };
const log = pino({ level: "silent" });

const pod = (name: string, resourceVersion: number, controller?: string): KubeObject => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: {
    name,
    namespace: "default",
    resourceVersion: String(resourceVersion),
    ...(controller === undefined
      ? {}
      : { ownerReferences: [{ apiVersion: "x/v1", kind: "X", name: "x", uid: controller, controller: true }] }),
  },
});

/** An API whose lists and watches a test scripts: each round is one list and what its watch tells before it ends. */
function scripted(rounds: { list: KubeObject[]; version: number; events: WatchEvent[]; end?: Error }[]) {
  const controller = new AbortController();
  const refuse = () => Promise.reject(new Error("not scripted"));
  const lists: number[] = [];
  let round = rounds[0];
  const api: ResourceApi = {
    get: refuse,
    create: refuse,
    patch: refuse,
    delete: refuse,
    bind: refuse,
    list: async () => {
      round = rounds[lists.length] ?? rounds.at(-1);
      lists.push(round?.version ?? 0);
      return { items: round?.list ?? [], resourceVersion: String(round?.version) };
    },
    watch: async function* (_, resourceVersion) {
      expect(resourceVersion).toBe(String(round?.version));
      yield* round?.events ?? [];
      if (round?.end !== undefined) throw round.end;
      controller.abort();
    },
  };
  return { api, signal: controller.signal, lists };
}

const gone410 = new ApiStatusError({
  kind: "Status",
  apiVersion: "v1",
  metadata: {},
  status: "Failure",
  reason: "Expired",
  code: 410,
});

describe("an object cache", () => {
  it("follows list and watch, and indexes by controller", async () => {
    const { api, signal } = scripted([
      {
        list: [pod("a", 1, "u1"), pod("b", 2)],
        version: 2,
        events: [
          { type: "MODIFIED", object: pod("a", 3, "u2") },
          { type: "ADDED", object: pod("c", 4, "u2") },
          { type: "DELETED", object: pod("b", 5) },
        ],
      },
    ]);
    const changes: string[] = [];
    const cache = new ObjectCache(api, resource, log, ({ metadata }) =>
      changes.push(`${metadata.name} ${metadata.resourceVersion}`),
    );
    await cache.run(signal);
    expect(changes).toEqual(["a 1", "b 2", "a 3", "c 4", "b 5"]);
    expect(cache.controlledBy("u1")).toEqual([]);
    expect(cache.controlledBy("u2").map((object) => object.metadata.name)).toEqual(["a", "c"]);
    expect(cache.get("default", "b")).toBeUndefined();
  });

  it("lists again after 410, and notices what went meanwhile", async () => {
    const { api, signal, lists } = scripted([
      { list: [pod("a", 1), pod("b", 2)], version: 2, events: [], end: gone410 },
      { list: [pod("b", 7)], version: 9, events: [] },
    ]);
    const changes: string[] = [];
    const cache = new ObjectCache(api, resource, log, ({ metadata }) => changes.push(metadata.name));
    await cache.run(signal);
    expect(lists).toEqual([2, 9]);
    expect(changes).toEqual(["a", "b", "a", "b"]);
    expect(cache.get("default", "a")).toBeUndefined();
  });

  it("learns what was created, but not what its watch has already told to be gone", async () => {
    const { api, signal } = scripted([
      {
        list: [],
        version: 2,
        events: [
          { type: "ADDED", object: pod("ghost", 3) },
          { type: "DELETED", object: pod("ghost", 4) },
        ],
      },
    ]);
    const cache = new ObjectCache(api, resource, log, () => undefined);
    await cache.run(signal);
    cache.learn(pod("ghost", 3));
    cache.learn(pod("new", 5));
    expect(cache.get("default", "ghost")).toBeUndefined();
    expect(cache.get("default", "new")).toBeDefined();
  });
});
