import { FakeCluster, ManualClock, readingOf, workspaceId } from "@holdfast/testkit";
import { describe, expect, it } from "vitest";
import type { SandboxReading } from "../ports/cluster.ts";
import { hasMoved, UnresolvedWrites } from "./unresolved-writes.ts";

const stamps = { modeChangedAt: "2026-01-01T00:00:00.000Z", writtenBy: "mark", holderEpoch: "3" };
const before: SandboxReading = readingOf(new FakeCluster(new ManualClock()).seed(workspaceId("demo"), { stamps }));
const touched = { ...before, resourceVersion: "999" };

describe("L24 an object has moved", () => {
  it("not by its resourceVersion alone, where the patch tests the stamps", () => {
    expect(hasMoved(before, touched)).toBe(false);
  });

  it.each([
    ["a stamp is absent", { stamps: { ...before.stamps, writtenBy: undefined } }],
    ["the epoch is absent", { stamps: { ...before.stamps, holderEpoch: undefined } }],
    ["the mode is absent", { lacks: { annotations: false, mode: true } }],
  ])("by its resourceVersion where the patch had to test that, because %s", (_why, lacking) => {
    expect(hasMoved({ ...before, ...lacking }, { ...touched, ...lacking })).toBe(true);
  });

  it.each([
    ["mode", { mode: "Suspended" as const }],
    ["written-by", { stamps: { ...before.stamps, writtenBy: "other" } }],
    ["epoch", { stamps: { ...before.stamps, holderEpoch: "4" } }],
    ["stamp", { stamps: { ...before.stamps, modeChangedAt: "2026-01-02T00:00:00.000Z" } }],
  ])("by its %s", (_what, changed) => {
    expect(hasMoved(before, { ...before, ...changed })).toBe(true);
  });
});

describe("L1 an unresolved write", () => {
  it("stays so until a reading shows that it can no longer land", () => {
    const writes = new UnresolvedWrites();
    writes.wakeSentFrom(before);
    writes.settleBy(touched);
    expect([writes.any, writes.stop]).toEqual([true, false]);
    writes.settleBy({ ...touched, stamps: { ...before.stamps, writtenBy: "other" } });
    expect(writes.any).toBe(false);
  });
});
