import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { applyJsonPatch, CopiesTooLarge, PatchFailed } from "./json-patch.ts";

const document = () => ({ map: { a: 1, "b/c": { "~": 2 } }, list: ["x", "y"], none: null });
const patched = (...operations: object[]) => applyJsonPatch(document(), operations);

describe("a JSON Patch, as a kube-apiserver applies it", () => {
  it.each([
    ["adds a member", [{ op: "add", path: "/map/new", value: 3 }], { map: { a: 1, "b/c": { "~": 2 }, new: 3 } }],
    ["replaces one that is absent", [{ op: "replace", path: "/map/new", value: 3 }], { map: { new: 3 } }],
    ["reads escapes", [{ op: "replace", path: "/map/b~1c/~0", value: 3 }], { map: { "b/c": { "~": 3 } } }],
    ["inserts into a list", [{ op: "add", path: "/list/1", value: "z" }], { list: ["x", "z", "y"] }],
    ["appends to a list", [{ op: "add", path: "/list/-", value: "z" }], { list: ["x", "y", "z"] }],
    ["counts from a list's end", [{ op: "remove", path: "/list/-1" }], { list: ["x"] }],
    ["moves", [{ op: "move", from: "/map/a", path: "/map/z" }], { map: { z: 1 } }],
    ["copies what is absent as null", [{ op: "copy", from: "/map/nothing", path: "/map/z" }], { map: { z: null } }],
    ["takes an absent value for null", [{ op: "add", path: "/map/z" }], { map: { z: null } }],
    ["reads a path without its slash from the second part on", [{ op: "add", path: "map/z", value: 1 }], { z: 1 }],
    ["tests for null what is absent", [{ op: "test", path: "/map/nothing", value: null }], {}],
    ["tests objects whatever their order", [{ op: "test", path: "/map", value: { "b/c": { "~": 2 }, a: 1 } }], {}],
  ])("%s", (_what, operations, expected) => {
    expect(patched(...operations)).toMatchObject(expected);
  });

  it.each([
    ["a test that fails", { op: "test", path: "/map/a", value: 2 }],
    ["a test below what is absent", { op: "test", path: "/nothing/below", value: null }],
    ["a remove of what is absent", { op: "remove", path: "/map/nothing" }],
    ["an add below what is absent", { op: "add", path: "/nothing/below", value: 1 }],
    ["an add below null", { op: "add", path: "/none/below", value: 1 }],
    ["a move of what is absent", { op: "move", from: "/map/nothing", path: "/map/z" }],
    ["an index that a list does not have", { op: "replace", path: "/list/2", value: "z" }],
    ["an index that is none", { op: "add", path: "/list/first", value: "z" }],
    ["an unknown operation", { op: "increment", path: "/map/a" }],
    ["no path", { op: "add", value: 1 }],
  ])("does not apply %s", (_what, operation) => {
    expect(() => patched(operation)).toThrow(PatchFailed);
  });

  it("counts what is copied", () => {
    const large = { op: "add", path: "/large", value: "x".repeat(1_000_000) };
    const copies = [1, 2, 3, 4].map((n) => ({ op: "copy", from: "/large", path: `/copy${n}` }));
    expect(() => patched(large, ...copies)).toThrow(CopiesTooLarge);
  });

  it("keeps every name a member like any other", () => {
    const made = patched({ op: "add", path: "/map/__proto__", value: { polluted: true } });
    expect(JSON.stringify(made)).toContain('"__proto__":{"polluted":true}');
    expect({}).not.toHaveProperty("polluted");
  });

  it("gives a document or says that it does not apply, whatever is sent", () => {
    const pointer = fc
      .array(fc.constantFrom("map", "list", "a", "0", "-", "-1", "none", "b~1c", "", "x"))
      .map((parts) => `/${parts.join("/")}`);
    const operation = fc.record(
      {
        op: fc.constantFrom("add", "remove", "replace", "move", "copy", "test", "other"),
        path: pointer,
        from: pointer,
        value: fc.jsonValue(),
      },
      { requiredKeys: ["op"] },
    );
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 6 }), (operations) => {
        try {
          const made = patched(...operations);
          expect(JSON.parse(JSON.stringify(made ?? null))).toEqual(made ?? null);
        } catch (error) {
          expect(error).toBeInstanceOf(PatchFailed);
        }
      }),
    );
  });
});
