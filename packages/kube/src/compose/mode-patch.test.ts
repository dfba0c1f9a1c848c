import { holderEpochFrom, podUidOf, sandboxUidOf } from "@holdfast/contract";
import type { ModeWish, SandboxReading } from "@holdfast/workspace";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readSandboxObject } from "../objects/sandbox.ts";
import { sandboxJson, uid } from "../testing/fixtures.ts";
import type { PatchOperation } from "./json-patch.ts";
import { pointer } from "./json-patch.ts";
import { composeModePatch, nextModeStamp } from "./mode-patch.ts";

const writtenByPath = "/metadata/annotations/holdfast.dev~1written-by";
const stampPath = "/metadata/annotations/sandbox.namzu.ai~1operating-mode-changed-at";
const epochPath = "/metadata/annotations/sandbox.namzu.ai~1holder-epoch";
const uidsPath = "/metadata/annotations/holdfast.dev~1volume-claim-uids";

const epoch = { "sandbox.namzu.ai/holder-epoch": "3" };

const read = (changes: Parameters<typeof sandboxJson>[0] = {}): SandboxReading =>
  readSandboxObject(sandboxJson(changes), "block");

const patchOf = (reading: SandboxReading, mode: "Running" | "Suspended", more: Partial<ModeWish> = {}) =>
  composeModePatch({ reading, mode, writtenBy: "me", volumeClaimUids: undefined, now: 1_000, ...more });

const paths = (operations: readonly PatchOperation[], op: "test" | "add") =>
  operations.filter((one) => one.op === op).map(({ path }) => path);

describe("the patch of a mode", () => {
  it("tests uid, written-by, stamp and the text of the epoch as read, and no resourceVersion where all stand", () => {
    expect(paths(patchOf(read(), "Suspended"), "test")).toEqual(["/metadata/uid", writtenByPath, stampPath, epochPath]);
  });

  it("tests the mode on every wake", () => {
    const patch = patchOf(read({ spec: { operatingMode: "Suspended" } }), "Running");
    expect(patch).toContainEqual({ op: "test", path: "/spec/operatingMode", value: "Suspended" });
    expect(patch.at(-1)).toEqual({ op: "add", path: "/spec/operatingMode", value: "Running" });
  });

  it.each([
    ["written-by", { ...epoch, "sandbox.namzu.ai/operating-mode-changed-at": "2026-01-02T03:04:05.678Z" }],
    ["the stamp", { ...epoch, "holdfast.dev/written-by": "call-1" }],
    [
      "the epoch",
      {
        "holdfast.dev/written-by": "call-1",
        "sandbox.namzu.ai/operating-mode-changed-at": "2026-01-02T03:04:05.678Z",
      },
    ],
    ["each of them", { other: "x" }],
  ])("tests the resourceVersion where %s is absent, and adds members one by one", (_what, annotations) => {
    const patch = patchOf(read({ metadata: { annotations } }), "Suspended");
    expect(patch).toContainEqual({ op: "test", path: "/metadata/resourceVersion", value: "41" });
    expect(paths(patch, "add")).toEqual([writtenByPath, stampPath, "/spec/operatingMode"]);
  });

  it("adds the whole map where there is none, under the resourceVersion", () => {
    expect(patchOf(read({ metadata: { annotations: undefined } }), "Suspended")).toStrictEqual([
      { op: "test", path: "/metadata/uid", value: uid },
      { op: "test", path: "/metadata/resourceVersion", value: "41" },
      {
        op: "add",
        path: "/metadata/annotations",
        value: {
          "holdfast.dev/written-by": "me",
          "sandbox.namzu.ai/operating-mode-changed-at": "1970-01-01T00:00:01.000Z",
        },
      },
      { op: "add", path: "/spec/operatingMode", value: "Suspended" },
    ]);
  });

  it("69 adds the whole map with the epoch where there is none, under the resourceVersion", () => {
    const patch = patchOf(read({ metadata: { annotations: undefined } }), "Suspended", { epoch: holderEpochFrom(3) });
    expect(paths(patch, "test")).toEqual(["/metadata/uid", "/metadata/resourceVersion"]);
    expect(patch).toContainEqual({
      op: "add",
      path: "/metadata/annotations",
      value: {
        "holdfast.dev/written-by": "me",
        "sandbox.namzu.ai/holder-epoch": "3",
        "sandbox.namzu.ai/operating-mode-changed-at": "1970-01-01T00:00:01.000Z",
      },
    });
  });

  it("70 adds the epoch as a member where there are other annotations, which survive", () => {
    const other = read({ metadata: { annotations: { other: "x" } } });
    const patch = patchOf(other, "Suspended", { epoch: holderEpochFrom(3) });
    expect(paths(patch, "test")).toEqual(["/metadata/uid", "/metadata/resourceVersion"]);
    expect(patch).toContainEqual({ op: "add", path: epochPath, value: "3" });
    expect(paths(patch, "add")).not.toContain("/metadata/annotations");
  });

  it("L20 stores an epoch where the mode does not move, and leaves the stamp alone", () => {
    const patch = patchOf(read(), "Running", { epoch: holderEpochFrom(4) });
    expect(patch).toContainEqual({ op: "test", path: epochPath, value: "3" });
    expect(paths(patch, "add")).toEqual([writtenByPath, epochPath]);
  });

  it("L21 tests an epoch that is no number as it was read, and never writes over it unasked", () => {
    const annotations = { "sandbox.namzu.ai/holder-epoch": "latest" };
    const patch = patchOf(read({ metadata: { annotations } }), "Suspended");
    expect(patch).toContainEqual({ op: "test", path: epochPath, value: "latest" });
    expect(paths(patch, "add")).not.toContain(epochPath);
  });

  it("suspends an object without a mode under its resourceVersion, which no test of the mode could do", () => {
    const patch = patchOf(read({ spec: { operatingMode: undefined } }), "Suspended");
    expect(paths(patch, "test")).toContain("/metadata/resourceVersion");
    expect(paths(patch, "test")).not.toContain("/spec/operatingMode");
    expect(paths(patch, "add")).toContain("/spec/operatingMode");
  });

  it("does not wake an object without a mode: it reads as Running, so only our mark is written", () => {
    const patch = patchOf(read({ spec: { operatingMode: undefined } }), "Running");
    expect(paths(patch, "add")).toEqual([writtenByPath]);
    expect(paths(patch, "test")).toContain("/metadata/resourceVersion");
    expect(paths(patch, "test")).not.toContain("/spec/operatingMode"); // There is none that could be as it was read.
  });

  it.each(["Running", "Suspended"] as const)(
    "where %s stays as it is, it holds that mode and writes only our mark",
    (mode) => {
      const patch = patchOf(read({ spec: { operatingMode: mode } }), mode);
      expect(patch).toContainEqual({ op: "test", path: "/spec/operatingMode", value: mode });
      expect(paths(patch, "add")).toEqual([writtenByPath]);
    },
  );

  it("records the claims' uids, sorted, and leaves the annotation alone where none is known", () => {
    const volumeClaimUids = { "disk-b": "2", "disk-a": "1" };
    expect(patchOf(read(), "Suspended", { volumeClaimUids })).toContainEqual({
      op: "add",
      path: uidsPath,
      value: "disk-a=1,disk-b=2",
    });
    expect(paths(patchOf(read(), "Suspended", { volumeClaimUids: {} }), "add")).not.toContain(uidsPath);
  });
});

describe("the stamp of a change of mode", () => {
  it.each([
    ["now", undefined, "2026-01-01T00:00:00.000Z"],
    ["now, after an older one", "2025-01-01T00:00:00.000Z", "2026-01-01T00:00:00.000Z"],
    ["1 ms after one of the same moment", "2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00.001Z"],
    ["1 ms after one in the future", "2027-01-01T00:00:00.999Z", "2027-01-01T00:00:01.000Z"],
    ["now, after what is no time", "yesterday", "2026-01-01T00:00:00.000Z"],
    ["now, after a bare year", "2030", "2026-01-01T00:00:00.000Z"],
    ["now, after the last moment that can be written", "9999-12-31T23:59:59.999Z", "2026-01-01T00:00:00.000Z"],
  ])("is %s", (_what, stamp, expected) => {
    expect(nextModeStamp(stamp, Date.parse("2026-01-01T00:00:00Z"))).toBe(expected);
  });
});

describe("whatever the reading", () => {
  const optionalText = fc.option(fc.string(), { nil: undefined });
  const stamps = fc.record({
    holderEpoch: optionalText,
    modeChangedAt: fc.oneof(
      optionalText,
      fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
    ),
    podTemplateHash: optionalText,
    createdBy: optionalText,
    writtenBy: optionalText,
    volumeClaimUids: optionalText,
  });
  const mode = fc.constantFrom("Running" as const, "Suspended" as const);
  const readings = fc
    .record({ stamps, mode, resourceVersion: fc.string({ minLength: 1 }), noMap: fc.boolean(), noMode: fc.boolean() })
    .map(({ noMap, noMode, ...one }): SandboxReading => {
      const noStamps = { ...one.stamps, modeChangedAt: undefined, writtenBy: undefined, holderEpoch: undefined };
      return {
        ...read(),
        ...one,
        uid: sandboxUidOf(podUidOf(uid)),
        mode: noMode ? "Running" : one.mode,
        stamps: noMap ? noStamps : one.stamps,
        lacks: { annotations: noMap, mode: noMode },
      };
    });
  const wishes = fc.record({
    reading: readings,
    mode,
    writtenBy: fc.string({ minLength: 1 }),
    volumeClaimUids: fc.option(fc.dictionary(fc.stringMatching(/^[a-z-]{1,8}$/), fc.uuid()), { nil: undefined }),
    epoch: fc.option(fc.maxSafeNat().map(holderEpochFrom), { nil: undefined }),
    now: fc.integer({ min: 0, max: 4_000_000_000_000 }),
  });

  it("the uid is tested first, tests come before writes, and nothing is anything but `test` and `add`", () => {
    fc.assert(
      fc.property(wishes, (wish) => {
        const patch = composeModePatch(wish);
        expect(patch[0]).toEqual({ op: "test", path: "/metadata/uid", value: wish.reading.uid });
        const firstAdd = patch.findIndex(({ op }) => op === "add");
        expect(patch.slice(0, firstAdd).every(({ op }) => op === "test")).toBe(true);
        expect(patch.slice(firstAdd).every(({ op }) => op === "add")).toBe(true);
      }),
    );
  });

  it("what is absent is covered by the resourceVersion, and what stands is tested as it was read", () => {
    fc.assert(
      fc.property(wishes, (wish) => {
        const { reading } = wish;
        const tests = new Map(
          composeModePatch(wish).flatMap((one) => (one.op === "test" ? [[one.path, one.value]] : [])),
        );
        const { writtenBy, modeChangedAt, holderEpoch } = reading.stamps;
        expect(tests.get(epochPath)).toBe(holderEpoch);
        expect(tests.get(writtenByPath)).toBe(writtenBy);
        expect(tests.get(stampPath)).toBe(modeChangedAt);
        const stamps = [writtenBy, modeChangedAt, holderEpoch];
        const isAbsent = stamps.includes(undefined) || reading.lacks?.mode === true;
        expect(tests.has("/metadata/resourceVersion")).toBe(isAbsent);
        const wakes = reading.mode === "Suspended" && wish.mode === "Running";
        if (wakes) expect(tests.get("/spec/operatingMode")).toBe("Suspended");
      }),
    );
  });

  it("our mark is always written; mode and stamp only when the mode changes, and then the stamp moves forward", () => {
    fc.assert(
      fc.property(wishes, (wish) => {
        const { reading } = wish;
        const written = writtenAnnotations(composeModePatch(wish), reading.lacks?.annotations === true);
        expect(written.get("holdfast.dev/written-by")).toBe(wish.writtenBy);
        expect(written.get("sandbox.namzu.ai/holder-epoch")).toBe(wish.epoch?.toString());
        const changes = reading.mode !== wish.mode;
        const stamp = written.get("sandbox.namzu.ai/operating-mode-changed-at");
        expect(stamp !== undefined).toBe(changes);
        const modes = composeModePatch(wish).filter(({ op, path }) => op === "add" && path === "/spec/operatingMode");
        expect(modes).toHaveLength(changes ? 1 : 0);
        if (stamp !== undefined) expect(stamp).toMatch(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/);
      }),
    );
  });

  it("a key is one member of its pointer, whatever is in it", () => {
    fc.assert(
      fc.property(fc.array(fc.string(), { minLength: 1 }), (members) => {
        const text = pointer(...members);
        const back = text
          .slice(1)
          .split("/")
          .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
        expect(back).toEqual(members);
      }),
    );
  });
});

function writtenAnnotations(patch: readonly PatchOperation[], wholeMap: boolean): Map<string, unknown> {
  const adds = patch.filter(({ op }) => op === "add");
  if (wholeMap) {
    const map = adds.find(({ path }) => path === "/metadata/annotations")?.value;
    return new Map(Object.entries(map as object));
  }
  const prefix = "/metadata/annotations/";
  const own = adds.filter(({ path }) => path.startsWith(prefix));
  return new Map(
    own.map(({ path, value }) => [path.slice(prefix.length).replaceAll("~1", "/").replaceAll("~0", "~"), value]),
  );
}
