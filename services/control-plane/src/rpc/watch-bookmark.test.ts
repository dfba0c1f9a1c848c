import { describe, expect, it } from "vitest";
import { bookmarkOf, versionOfBookmark } from "./watch-bookmark.ts";

const under = { namespace: "default", template: "small", idPrefix: undefined };
const refused = expect.objectContaining({
  reason: "INVALID_REQUEST",
  violations: [expect.objectContaining({ field: "bookmark" })],
});

describe("a bookmark", () => {
  it("gives its version back under the same namespace and filter, and is none when it is empty", () => {
    expect(versionOfBookmark(bookmarkOf("4711", under), { ...under })).toBe("4711");
    expect(versionOfBookmark("", under)).toBeUndefined();
  });

  it("is refused under another namespace or filter, and when it was not made here", () => {
    const bookmark = bookmarkOf("4711", under);
    for (const other of [
      { ...under, namespace: "team-a" },
      { ...under, template: undefined },
    ]) {
      expect(() => versionOfBookmark(bookmark, other)).toThrow(refused);
    }
    for (const text of ["4711", "####", bookmark.slice(4)]) {
      expect(() => versionOfBookmark(text, under)).toThrow(refused);
    }
  });
});
