import { workspaceId } from "@holdfast/testkit";
import fc from "fast-check";
import { expect, it } from "vitest";
import { type LiveCall, LiveCalls } from "./live-calls.ts";

const kinds: readonly LiveCall[] = ["executions", "sessions", "ports"];

it("counts what is held, whatever the order in which it begins and ends, and keeps nothing of what is idle", () => {
  const step = fc.record({ id: fc.integer({ min: 0, max: 2 }), kind: fc.constantFrom(...kinds), ends: fc.nat(9) });
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const live = new LiveCalls();
      const held: { readonly id: number; readonly kind: LiveCall; readonly end: () => void }[] = [];
      const end = (at: number): void => {
        const [over] = held.splice(at, 1);
        over?.end();
        over?.end(); // A second end is none.
      };
      const assertCounted = (): void => {
        for (const id of [0, 1, 2]) {
          const counted = kinds.map((kind) => [kind, held.filter((of) => of.id === id && of.kind === kind).length]);
          expect(live.of(workspaceId(`w${id}`))).toEqual(Object.fromEntries(counted));
        }
        expect(live.size).toBe(new Set(held.map(({ id }) => id)).size);
      };
      for (const { id, kind, ends } of steps) {
        held.push({ id, kind, end: live.take(workspaceId(`w${id}`), kind) });
        if (ends < held.length) end(ends);
        assertCounted();
      }
      while (held.length > 0) end(0);
      assertCounted();
    }),
  );
});

it("what was told does not change behind its reader", () => {
  const live = new LiveCalls();
  const id = workspaceId("w");
  const end = live.take(id, "ports");
  const told = live.of(id);
  end();
  expect(told.ports).toBe(1);
  expect(live.of(id).ports).toBe(0);
});
