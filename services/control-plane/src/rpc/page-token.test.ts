import { describe, expect, it } from "vitest";
import { continueTokenOf, pageTokenOf } from "./page-token.ts";

const filter = { template: "small", mode: undefined };
const refused = expect.objectContaining({
  reason: "PAGE_TOKEN_EXPIRED",
  violations: [expect.objectContaining({ field: "page_token" })],
});

describe("a page token", () => {
  it("gives the cluster's token back under the same filter, whatever it is made of", () => {
    for (const token of ["a", "eyJ2IjoibWV0YSJ9==", "ü\n/"]) {
      expect(continueTokenOf(pageTokenOf(token, filter), { ...filter })).toBe(token);
    }
  });

  it("is empty on the last page, and begins a list when it is empty", () => {
    expect(pageTokenOf(undefined, filter)).toBe("");
    expect(continueTokenOf("", filter)).toBeUndefined();
  });

  it("is refused under another filter, and when it was not made here", () => {
    const token = pageTokenOf("a", filter);
    expect(() => continueTokenOf(token, { ...filter, template: "large" })).toThrow(refused);
    expect(() => continueTokenOf(token, {})).toThrow(refused);
    expect(() => continueTokenOf(token, {})).toThrow(/belongs to a list with another filter/);
    expect(() => continueTokenOf("x", filter)).toThrow(/is not a next_page_token of this service/);
    for (const text of ["x", "####", "bm90IG9uZQ", token.slice(4)]) {
      expect(() => continueTokenOf(text, filter)).toThrow(refused);
    }
  });
});
