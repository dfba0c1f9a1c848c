import { describe, expect, it } from "vitest";
import { differences, isUnder } from "./compare.ts";
import { Placeholders } from "./placeholders.ts";

const entry = (seen: Parameters<Placeholders["apply"]>[0], step = "step") => ({ step, seen });

describe("comparing transcripts", () => {
  it("finds nothing where they are the same", () => {
    expect(differences([entry({ a: [1, { b: null }] })], [entry({ a: [1, { b: null }] })])).toEqual([]);
  });

  it("finds a value, a member and a list's length that differ, each at its place", () => {
    const recorded = [entry({ same: 1, value: 1, gone: true, list: [1], deep: [{ a: "x" }] })];
    const seen = [entry({ same: 1, value: 2, come: true, list: [1, 2], deep: [{ a: "y" }] })];
    expect(differences(recorded, seen).map(({ path }) => path)).toEqual(["value", "gone", "list", "deep/0/a", "come"]);
  });

  it("finds a step that is missing, added or another", () => {
    expect(differences([entry(1), entry(2)], [entry(1)])).toHaveLength(1);
    expect(differences([], [entry(1)])).toHaveLength(1);
    expect(differences([entry(1, "a")], [entry(1, "b")])).toHaveLength(1);
  });

  it("takes a place and what is below it as one, and nothing beside it", () => {
    const at = (path: string) => ({ step: "s", path, recorded: 1, seen: 2 });
    expect(isUnder(at("body/message"), { step: "s", path: "body" })).toBe(true);
    expect(isUnder(at("body"), { step: "s", path: "body" })).toBe(true);
    expect(isUnder(at("bodyguard"), { step: "s", path: "body" })).toBe(false);
    expect(isUnder(at("body"), { step: "other", path: "" })).toBe(false);
  });
});

describe("placeholders", () => {
  it("hide names, uids, versions, times and tokens, and keep which uid is which", () => {
    const hidden = new Placeholders("conformance-abc");
    hidden.add("c1x2y3-pod", "<pod>");
    const uid = "1b4e28ba-2fa1-41d2-883f-0016d3cca427";
    const other = "2b4e28ba-2fa1-41d2-883f-0016d3cca427";
    expect(
      hidden.apply({
        metadata: { name: "c1x2y3-pod", namespace: "conformance-abc", uid, resourceVersion: "42", continue: "abc" },
        owners: [uid, other],
        at: "2026-11-30T05:13:00Z",
        message: 'pods "c1x2y3-pod" in namespaces/conformance-abc: too old resource version: 1 (42)',
      }),
    ).toEqual({
      metadata: {
        name: "<pod>",
        namespace: "<namespace>",
        uid: "<uid-1>",
        resourceVersion: "<rv>",
        continue: "<token>",
      },
      owners: ["<uid-1>", "<uid-2>"],
      at: "<time>",
      message: 'pods "<pod>" in namespaces/<namespace>: too old resource version: <rv> (<rv>)',
    });
  });

  it("leave what is told as it is: an empty version, a zero, a number", () => {
    const hidden = new Placeholders("n");
    const told = { resourceVersion: "0", continue: "", generation: 2, text: "n.svc and n" };
    expect(hidden.apply(told)).toEqual(told);
  });
});
