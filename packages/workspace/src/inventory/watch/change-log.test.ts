import { describe, expect, it } from "vitest";
import type { WorkspaceSummary } from "../../view.ts";
import type { Change } from "./change.ts";
import { ChangeLog } from "./change-log.ts";
import { isAfter, isComparable } from "./resource-version.ts";

const changeAt = (version: number): Change => ({
  version: String(version),
  before: "absent",
  after: undefined,
  last: {} as WorkspaceSummary,
});

describe("the log of changes", () => {
  it("gives what came after a version, and nothing for one that it does not reach back to", () => {
    const log = new ChangeLog("9", 100);
    for (const version of [10, 12, 12, 100]) log.add(changeAt(version));
    const after = (version: string) => log.after(version)?.map((change) => change.version);
    expect(after("8")).toBeUndefined();
    expect(after("9")).toEqual(["10", "12", "12", "100"]);
    expect(after("11")).toEqual(["12", "12", "100"]);
    expect(after("12")).toEqual(["100"]);
    expect(after("100")).toEqual([]);
  });

  it("keeps at least its bound, at most twice that, and knows what it has dropped", () => {
    const log = new ChangeLog("0", 10);
    for (let version = 1; version <= 1_000; version += 1) log.add(changeAt(version));
    expect(log.after("900")).toBeUndefined();
    expect(log.after("990")?.map((change) => change.version)).toEqual(
      Array.from({ length: 10 }, (_, index) => String(991 + index)),
    );
  });
});

describe("versions", () => {
  it("are compared as numbers of any length, not as texts", () => {
    expect(isAfter("10", "9")).toBe(true);
    expect(isAfter("9", "10")).toBe(false);
    expect(isAfter("9007199254740993", "9007199254740992")).toBe(true);
    expect(isAfter("7", "7")).toBe(false);
  });

  it("that are no plain integers are not compared", () => {
    for (const version of ["", "007", "-1", "1.5", "abc", "1".repeat(20)]) expect(isComparable(version)).toBe(false);
    for (const version of ["0", "1", "9".repeat(19)]) expect(isComparable(version)).toBe(true);
  });
});
