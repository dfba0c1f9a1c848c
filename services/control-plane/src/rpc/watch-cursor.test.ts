import { describe, expect, it } from "vitest";
import { cursorOf, placeOfCursor } from "./watch-cursor.ts";

const under = { process: "p1", workspace: "w" };

describe("a cursor of WatchWorkspace", () => {
  it("is a place in one process's chronicle of one workspace; any other is elsewhere", () => {
    const cursor = cursorOf(41, under);
    expect(cursor.length).toBeLessThanOrEqual(256);
    expect(placeOfCursor(cursor, under)).toBe(41);
    expect(placeOfCursor("", under)).toBeUndefined();
    expect(placeOfCursor(cursor, { ...under, process: "p2" })).toBe("elsewhere");
    expect(placeOfCursor(cursor, { ...under, workspace: "other" })).toBe("elsewhere");
  });

  it.each(["nonsense!", "YWJj", Buffer.from("0123456789abcdef").toString("base64url")])(
    "%s is none: INVALID_REQUEST",
    (cursor) => {
      expect(() => placeOfCursor(cursor, under)).toThrow(/cursor/);
    },
  );

  it("with a place that is no number is none", () => {
    const forged = cursorOf(7, under).replace(/.$/, "_");
    expect(() => placeOfCursor(forged, under)).toThrow(/cursor/);
  });
});
