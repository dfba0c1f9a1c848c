import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isApiStatus } from "../../api-status-error.ts";
import { type MemoryCluster, startMemoryCluster } from "../../memory/memory-cluster.ts";
import type { DeleteWish, KubeObject, OwnerReference, ResourceRef } from "../../resource-api.ts";

const secrets: ResourceRef = { group: "", version: "v1", plural: "secrets" };
const kept = "test.example/kept";
const names = ["a", "b", "c", "d", "e"];

/** Owners are named by what stands under these names when the step is taken, or by a uid that nobody has. */
interface Create {
  readonly act: "create";
  readonly name: string;
  readonly owners: readonly { readonly of: string; readonly blocks: boolean }[];
  readonly isKept: boolean;
}
type Step =
  | Create
  | { readonly act: "delete"; readonly name: string; readonly policy: DeleteWish["propagationPolicy"] }
  | { readonly act: "release"; readonly name: string };

const name = fc.constantFrom(...names);
const createOf = (of: string, owners: readonly string[]): fc.Arbitrary<Create> =>
  fc.record({
    act: fc.constant("create"),
    name: fc.constant(of),
    owners: fc.uniqueArray(fc.record({ of: fc.constantFrom(...owners), blocks: fc.boolean() }), {
      maxLength: 2,
      selector: (owner) => owner.of,
    }),
    isKept: fc.integer({ min: 0, max: 3 }).map((n) => n === 0),
  });
const create = name.chain((of) => createOf(of, [...names, ...names, "nobody"]));
/** A family to begin with: each may be owned by those before it. */
const family = fc.tuple(...names.map((of, index) => createOf(of, index === 0 ? ["a"] : names.slice(0, index))));
const policy = fc.constantFrom("Background", "Foreground", "Orphan", undefined);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: create },
  { weight: 2, arbitrary: fc.record({ act: fc.constant("delete" as const), name, policy }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constant("release" as const), name }) },
);

const ref = (of: string) => ({ resource: secrets, namespace: "default", name: of });
const uidOf = (object: KubeObject): string => object.metadata.uid ?? "";
const ownersOf = (object: KubeObject): readonly OwnerReference[] => object.metadata.ownerReferences ?? [];
const isGoing = (object: KubeObject): boolean => object.metadata.deletionTimestamp !== undefined;
const waitsFor = (object: KubeObject, finalizer: string): boolean =>
  isGoing(object) && (object.metadata.finalizers ?? []).includes(finalizer);

/** Tells whether a dependent has to go before its owner may. */
const blocks = (dependent: KubeObject, owner: KubeObject): boolean =>
  ownersOf(dependent).some(({ uid, blockOwnerDeletion }) => uid === uidOf(owner) && blockOwnerDeletion === true);

async function stand(cluster: MemoryCluster): Promise<Map<string, KubeObject>> {
  await cluster.settle();
  const { items } = await cluster.api().list(secrets, "default");
  return new Map(items.map((item) => [uidOf(item), item]));
}

async function take(cluster: MemoryCluster, one: Step, standing: Map<string, KubeObject>): Promise<void> {
  const found = [...standing.values()].find((object) => object.metadata.name === one.name);
  const api = cluster.api();
  if (one.act === "create") {
    const ownerReferences = one.owners.map(({ of, blocks }): OwnerReference => {
      const owner = [...standing.values()].find((object) => object.metadata.name === of);
      const uid = owner === undefined ? "00000000-0000-4000-8000-000000000000" : uidOf(owner);
      return { apiVersion: "v1", kind: "Secret", name: of, uid, blockOwnerDeletion: blocks };
    });
    const metadata = { name: one.name, ownerReferences, ...(one.isKept ? { finalizers: [kept] } : {}) };
    await api.create(secrets, "default", { apiVersion: "v1", kind: "Secret", metadata }).catch(refusedAsTaken);
  } else if (found !== undefined && one.act === "delete") {
    await api.delete(ref(one.name), one.policy === undefined ? {} : { propagationPolicy: one.policy });
  } else if (found !== undefined) {
    const finalizers = (found.metadata.finalizers ?? []).filter((finalizer) => finalizer !== kept);
    const body = { metadata: { finalizers: finalizers.length === 0 ? null : finalizers } };
    await api.patch(ref(one.name), "application/merge-patch+json", body);
  }
}

function refusedAsTaken(error: unknown): void {
  if (!isApiStatus(error, 409)) throw error;
}

describe("for any history of owners, finalizers and deletions", () => {
  it("L4 nothing goes that nobody asked for, nothing stays that has lost its owners, and nobody waits for nothing", async () => {
    await fc.assert(
      fc.asyncProperty(family, fc.array(step, { minLength: 3, maxLength: 20 }), async (first, later) => {
        const cluster = await startMemoryCluster({ node: "none", controller: false });
        const asked = new Set<string>();
        /** The dependents that an orphaning delete has found: they stay. */
        const orphans = new Set<string>();
        const foreground = new Set<string>();
        /** Marked, and held by a finalizer, without taking its dependents along. */
        const background = new Set<string>();
        try {
          let before = await stand(cluster);
          for (const one of [...first, ...later]) {
            const target = [...before.values()].find((object) => object.metadata.name === one.name);
            if (one.act === "delete" && target !== undefined) {
              asked.add(uidOf(target));
              if (one.policy === "Orphan" && !isGoing(target)) {
                const own = [...before.values()].filter((object) =>
                  ownersOf(object).some((o) => o.uid === uidOf(target)),
                );
                for (const object of own) if (ownersOf(object).length === 1) orphans.add(uidOf(object));
              }
              if (one.policy === "Foreground") foreground.add(uidOf(target));
              else if (one.policy !== undefined) foreground.delete(uidOf(target));
              if (one.policy === "Foreground") background.delete(uidOf(target));
              else if (!isGoing(target)) background.add(uidOf(target));
            }
            await take(cluster, one, before);
            const after = await stand(cluster);
            for (const gone of [...before.values()].filter((object) => !after.has(uidOf(object)))) {
              const blocking = [...after.values()].filter((object) => blocks(object, gone));
              if (foreground.has(uidOf(gone))) expect(blocking).toEqual([]);
              if (asked.has(uidOf(gone))) continue;
              expect(orphans.has(uidOf(gone))).toBe(false);
              // It had owners, and each of them is gone, or goes in a way that takes its dependents along.
              expect(ownersOf(gone).length).toBeGreaterThan(0);
              for (const { uid } of ownersOf(gone)) {
                const owner = after.get(uid);
                expect(owner === undefined || (isGoing(owner) && !background.has(uid))).toBe(true);
              }
            }
            for (const object of after.values()) {
              const living = ownersOf(object).filter(({ uid }) => after.has(uid));
              if (ownersOf(object).length > 0 && living.length === 0) expect(isGoing(object)).toBe(true);
              if (isGoing(object)) expect(object.metadata.finalizers ?? []).not.toEqual([]);
              expect(waitsFor(object, "orphan")).toBe(false);
              if (waitsFor(object, "foregroundDeletion")) {
                expect([...after.values()].filter((other) => blocks(other, object))).not.toEqual([]);
              }
            }
            before = after;
          }
        } finally {
          await cluster.stop();
        }
      }),
      { numRuns: 80 },
    );
  }, 60_000);
});
