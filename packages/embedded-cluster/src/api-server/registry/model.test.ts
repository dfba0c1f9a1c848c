import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { findType } from "../resource-types.ts";
import { openDatabase } from "../store/database.ts";
import { ObjectStore } from "../store/object-store.ts";
import { parse } from "./object-text.ts";
import { Registry } from "./registry.ts";
import { compileSelection, type Selection } from "./selectors.ts";

const secrets = findType({ group: "", version: "v1", plural: "secrets" });
const namespaces = findType({ group: "", version: "v1", plural: "namespaces" });
if (secrets === undefined || namespaces === undefined) throw new Error("not served");

type Step = { readonly name: string; readonly act: "put" | "remove"; readonly label: string };

const steps = fc.array(
  fc.record<Step>({
    name: fc.constantFrom("a", "b", "c", "d"),
    act: fc.constantFrom("put", "put", "remove"),
    label: fc.constantFrom("1", "2"),
  }),
  { maxLength: 40 },
);

/** A registry over a store of its own, which goes with it. */
function openRegistry(): { registry: Registry; close: () => void } {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-model-"));
  const store = new ObjectStore(openDatabase(directory, directory), { changes: 1_000, bytes: 1e9 });
  const registry = new Registry(store, () => new Date(0));
  registry.create(namespaces ?? expect.fail(), "", { metadata: { name: "default" } });
  return {
    registry,
    close: () => {
      store.close();
      rmSync(directory, { recursive: true });
    },
  };
}

function take(registry: Registry, { name, act, label }: Step): void {
  const type = secrets ?? expect.fail();
  const target = { type, namespace: "default", name };
  const isThere = list(registry, {}).some((body) => parse(body).metadata.name === name);
  const metadata = { labels: { l: label } };
  if (act === "remove") {
    if (isThere) registry.delete(target);
  } else if (isThere) registry.patch(target, "application/merge-patch+json", { metadata });
  else registry.create(type, "default", { metadata: { name, ...metadata } });
}

const list = (registry: Registry, selection: Selection): string[] => [
  ...registry.list(secrets ?? expect.fail(), "default", selection).bodies(),
];

describe("for any history", () => {
  it("a list followed by its watch, from any point and under any selector, ends at what a list then says", () => {
    fc.assert(
      fc.property(steps, fc.nat(40), fc.constantFrom({}, { labelSelector: "l=1" }), (history, start, selection) => {
        const { registry, close } = openRegistry();
        try {
          for (const step of history.slice(0, start)) take(registry, step);
          const seen = new Map(list(registry, selection).map((body) => [parse(body).metadata.name, body]));
          const cursor = registry.watch(
            secrets ?? expect.fail(),
            "default",
            { t: "after", rv: registry.revision },
            selection,
          );
          for (const step of history.slice(start)) take(registry, step);
          let last = 0;
          for (let events = cursor.read(3); events.length > 0; events = cursor.read(3)) {
            for (const { type, body } of events) {
              const { name, resourceVersion } = parse(body).metadata;
              expect(seen.has(name)).toBe(type !== "ADDED");
              expect(Number(resourceVersion)).toBeGreaterThan(last);
              last = Number(resourceVersion);
              if (type === "DELETED") seen.delete(name);
              else seen.set(name, body);
            }
          }
          cursor.close();
          expect([...seen.values()].toSorted()).toEqual(list(registry, selection).toSorted());
        } finally {
          close();
        }
      }),
      { numRuns: 60 },
    );
  });

  it("pages give exactly what stood at the first page, whatever is done between them", () => {
    fc.assert(
      fc.property(steps, steps, fc.integer({ min: 1, max: 3 }), (before, between, limit) => {
        const { registry, close } = openRegistry();
        const type = secrets ?? expect.fail();
        try {
          for (const step of before) take(registry, step);
          const stood = list(registry, {});
          const left = [...between];
          const seen: string[] = [];
          let token: string | undefined;
          do {
            const page = registry.list(type, "default", { limit, continue: token });
            seen.push(...page.bodies());
            token = page.continue;
            expect(page.remaining ?? 0).toBe(stood.length - seen.length);
            for (const step of left.splice(0, 7)) take(registry, step);
          } while (token !== undefined);
          expect(seen).toEqual(stood);
        } finally {
          close();
        }
      }),
      { numRuns: 60 },
    );
  });
});

describe("compileSelection", () => {
  it("reads any text without failing otherwise than by refusing it", () => {
    const type = secrets ?? expect.fail();
    fc.assert(
      fc.property(fc.string(), fc.string(), (labelSelector, fieldSelector) => {
        try {
          compileSelection(type, { labelSelector, fieldSelector })?.({ metadata: { name: "a", labels: {} } });
        } catch (error) {
          expect(error).toMatchObject({ code: 400 });
        }
      }),
    );
  });
});
