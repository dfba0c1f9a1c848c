import { describe, expect, it } from "vitest";
import { type Caller, epochOfMetadata, parseEpoch, parseStartFencing, parseStopFencing } from "./parse-fencing.ts";

const calling = (epoch?: string): Caller => ({
  peer: "10.0.0.7:5",
  header: (name) => (name === "holdfast-epoch" ? epoch : undefined),
});
const none = { case: undefined } as const;
const invalid = (field: string) =>
  expect.objectContaining({ reason: "INVALID_REQUEST", violations: [expect.objectContaining({ field })] });

describe("L20 the epoch of a call", () => {
  it("is the field, or metadata in its place; both are one when they say the same", () => {
    expect(parseEpoch(undefined, calling())).toBeUndefined();
    expect(parseEpoch(7n, calling())).toBe(7);
    expect(parseEpoch(undefined, calling("7"))).toBe(7);
    expect(parseEpoch(7n, calling("7"))).toBe(7);
  });

  it("is 0 when a 0 is present, which is not none", () => {
    expect(parseEpoch(0n, calling())).toBe(0);
    expect(parseEpoch(undefined, calling("0"))).toBe(0);
    expect(parseStartFencing({ fencing: { case: "epoch", value: 0n } }, calling())).toEqual({ t: "epoch", epoch: 0 });
  });

  it("is refused where field and metadata differ", () => {
    expect(() => parseEpoch(7n, calling("8"))).toThrow(invalid("epoch"));
  });

  it.each(["", "latest", "-1", "1.5", "07", " 7", "9007199254740992", "7, 7", "0x7", "1e2"])(
    "in metadata is refused unless it is one whole decimal number up to 2^53 − 1: %j",
    (text) => {
      expect(() => epochOfMetadata(calling(text))).toThrow(invalid("metadata holdfast-epoch"));
    },
  );

  it("may be 2^53 − 1", () => {
    expect(epochOfMetadata(calling("9007199254740991"))).toBe(Number.MAX_SAFE_INTEGER);
  });
});

describe("L20 a start", () => {
  it("carries an epoch, takes over, or neither", () => {
    expect(parseStartFencing({ fencing: none }, calling())).toEqual({ t: "none" });
    expect(parseStartFencing({ fencing: none }, calling("4"))).toEqual({ t: "epoch", epoch: 4 });
    expect(parseStartFencing({ fencing: { case: "takeOver", value: true } }, calling())).toEqual({ t: "take_over" });
  });

  it("that says take_over = false takes nothing over", () => {
    expect(parseStartFencing({ fencing: { case: "takeOver", value: false } }, calling("4"))).toEqual({
      t: "epoch",
      epoch: 4,
    });
  });

  it("does not take over under an epoch of metadata", () => {
    expect(() => parseStartFencing({ fencing: { case: "takeOver", value: true } }, calling("4"))).toThrow(
      invalid("take_over"),
    );
  });
});

describe("L21 a stop", () => {
  it("carries an epoch, ignores the fence by name, or neither", () => {
    expect(parseStopFencing({ ignoreFence: false }, calling())).toEqual({ t: "none" });
    expect(parseStopFencing({ ignoreFence: false, epoch: 0n }, calling())).toEqual({ t: "epoch", epoch: 0 });
    expect(parseStopFencing({ ignoreFence: true }, calling())).toEqual({ t: "ignore_fence", by: "10.0.0.7:5" });
  });

  it("does not ignore the fence under an epoch", () => {
    expect(() => parseStopFencing({ ignoreFence: true, epoch: 4n }, calling())).toThrow(invalid("ignore_fence"));
    expect(() => parseStopFencing({ ignoreFence: true }, calling("4"))).toThrow(invalid("ignore_fence"));
  });
});
