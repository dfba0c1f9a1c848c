import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalJson, podTemplateHash } from "./canonical-json.ts";

describe("canonical JSON", () => {
  it("sorts keys by code unit at every level, digits among them", () => {
    expect(canonicalJson({ b: { "9": 1, "10": 2, é: 3, Z: 4, a: 5 }, a: [{ y: 1, x: 2 }] })).toBe(
      '{"a":[{"x":2,"y":1}],"b":{"10":2,"9":1,"Z":4,"a":5,"é":3}}',
    );
  });

  it("leaves undefined members out and keeps lists in their order", () => {
    expect(canonicalJson({ b: undefined, a: [3, 1, undefined, null] })).toBe('{"a":[3,1,null,null]}');
  });

  it("keeps a member called __proto__", () => {
    expect(canonicalJson(JSON.parse('{"b":1,"__proto__":{"x":1}}'))).toBe('{"__proto__":{"x":1},"b":1}');
  });

  it("means what it was made from", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(JSON.parse(canonicalJson(JSON.parse(text)))).toEqual(JSON.parse(text));
      }),
    );
  });

  it("does not depend on the order of members", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (object) => {
        const reversed = Object.fromEntries(Object.entries(object).reverse());
        expect(canonicalJson(reversed)).toBe(canonicalJson(object));
      }),
    );
  });
});

describe("the hash of a pod template", () => {
  it("is sha256: and the hex hash of its canonical JSON", () => {
    const expected = createHash("sha256").update('{"metadata":{"labels":{"a":"1"}},"spec":{}}').digest("hex");
    expect(podTemplateHash({ spec: {}, metadata: { labels: { a: "1" } } })).toBe(`sha256:${expected}`);
  });
});
