import fc from "fast-check";
import { expect, it } from "vitest";
import { doubledMembers } from "./doubled-members.ts";

it.each([
  ['{"a":1,"b":{"a":1}}', []],
  ['{"a":1,"a":2}', ["a"]],
  ['{"spec":{"x":[{"y":1},{"y":1,"y":[2]}],"z":{"y":1},"x":null}}', ["spec.x[1].y", "spec.x"]],
  ['{"a":"\\"b\\":","b":"{","b":1}', ["b"]],
  ['{"\\u0061":1,"a":2}', ["a"]],
  ["[[1,2],[3]]", []],
  ['"text"', []],
])("finds what stands twice in %s", (json, expected) => {
  expect(doubledMembers(json)).toEqual(expected);
});

it("finds nothing in what was written from an object, however it is spaced", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom(undefined, 2), (value, space) => {
      expect(doubledMembers(JSON.stringify(value, undefined, space))).toEqual([]);
    }),
  );
});
