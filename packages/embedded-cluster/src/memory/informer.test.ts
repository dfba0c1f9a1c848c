import fc from "fast-check";
import { expect, it } from "vitest";
import { isApiStatus } from "../api-status-error.ts";
import type { Stall } from "../faults/faults.ts";
import type { KubeObject, ResourceApi, ResourceRef } from "../resource-api.ts";
import { startMemoryCluster } from "./memory-cluster.ts";

const secrets: ResourceRef = { group: "", version: "v1", plural: "secrets" };

/** What an informer does: list, watch, take the watch up again where it broke off, list again after a 410. */
class Reflector {
  readonly objects = new Map<string, KubeObject>();
  lists = 0;
  readonly #api: ResourceApi;

  constructor(api: ResourceApi) {
    this.#api = api;
  }

  async run(signal: AbortSignal): Promise<void> {
    let version: string | undefined;
    while (!signal.aborted) {
      try {
        version ??= await this.#list();
        for await (const { type, object } of this.#api.watch(secrets, version, signal, "default")) {
          // A gap or a repeat would show here, long before the end.
          expect(Number(object.metadata.resourceVersion)).toBeGreaterThan(Number(version));
          expect(this.objects.has(object.metadata.name)).toBe(type !== "ADDED");
          version = object.metadata.resourceVersion ?? version;
          if (type === "DELETED") this.objects.delete(object.metadata.name);
          else this.objects.set(object.metadata.name, object);
        }
      } catch (error) {
        if (isApiStatus(error, 410)) version = undefined;
        else if (!(error instanceof Error && error.name === "LostWatchError")) throw error;
      }
    }
  }

  async #list(): Promise<string> {
    const { items, resourceVersion } = await this.#api.list(secrets, "default");
    this.lists++;
    this.objects.clear();
    for (const item of items) this.objects.set(item.metadata.name, item);
    return resourceVersion;
  }
}

type Event = { readonly t: "writes"; readonly count: number } | { readonly t: "cut" | "compact" | "stall" | "unstall" };

it("an informer whose connection is cut and stalled and whose history is compacted, at any time, ends at what a list says", async () => {
  const event: fc.Arbitrary<Event> = fc.oneof(
    { weight: 4, arbitrary: fc.record({ t: fc.constant("writes" as const), count: fc.integer({ min: 1, max: 60 }) }) },
    { weight: 3, arbitrary: fc.record({ t: fc.constantFrom("cut", "compact", "stall", "unstall") }) },
  );
  let lists = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(event, { minLength: 5, maxLength: 30 }), async (events) => {
      // A history so short that a stalled watch falls out of it by itself, too.
      const cluster = await startMemoryCluster({
        node: "none",
        controller: false,
        history: { changes: 50, bytes: 1e9 },
      });
      const stopping = new AbortController();
      const informer = new Reflector(cluster.api("informer"));
      const running = informer.run(stopping.signal);
      const writer = cluster.api("writer");
      const stalls: Stall[] = [];
      let written = 0;
      const write = async (): Promise<void> => {
        const n = written++;
        const ref = { resource: secrets, namespace: "default", name: `s${n % 7}` };
        const metadata = { name: ref.name, labels: { n: String(n) } };
        if (n % 11 === 10)
          await writer.delete(ref).catch(() => undefined); // it may not be there
        else {
          await writer
            .patch(ref, "application/merge-patch+json", { metadata })
            .catch(() => writer.create(secrets, "default", { apiVersion: "v1", kind: "Secret", metadata }));
        }
      };
      try {
        for (const one of events) {
          if (one.t === "writes") for (let n = 0; n < one.count; n++) await write();
          else if (one.t === "cut") cluster.faults.dropWatches({ by: "informer" });
          else if (one.t === "compact") cluster.compact();
          else if (one.t === "stall") stalls.push(cluster.faults.stallWatches({ by: "informer" }));
          else stalls.pop()?.undo();
          await new Promise((resolve) => setImmediate(resolve));
        }
        for (const stall of stalls) stall.undo();
        await cluster.settle();
        const { items } = await writer.list(secrets, "default");
        expect([...informer.objects.values()].toSorted(byName)).toEqual(items.toSorted(byName));
        lists += informer.lists;
      } finally {
        stopping.abort();
        await cluster.stop();
        await running;
      }
    }),
    { numRuns: 60 },
  );
  expect(lists).toBeGreaterThan(60); // some had to list again
}, 60_000);

function byName(a: KubeObject, b: KubeObject): number {
  return a.metadata.name < b.metadata.name ? -1 : 1;
}
