import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { durationMs, durationOf, timestampMs, timestampOf } from "./protobuf-time.ts";

describe("durations", () => {
  it("are exact in milliseconds, also beyond 2^31 of them", () => {
    expect(durationMs({ seconds: 315_576_000_000n, nanos: 999_000_000 } as never)).toBe(315_576_000_000_999);
    expect(durationMs({ seconds: 2_147_484n, nanos: 0 } as never)).toBe(2_147_484_000);
  });

  it("never become 0 when they are more than nothing", () => {
    expect(durationMs({ seconds: 0n, nanos: 1 } as never)).toBe(1);
    expect(durationMs({ seconds: 0n, nanos: 0 } as never)).toBe(0);
  });

  it("come back as they went, for whole milliseconds", () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), (ms) => {
        expect(durationMs(durationOf(ms))).toBe(ms);
      }),
    );
  });

  it("keep fractions of a millisecond", () => {
    expect(durationOf(1.5)).toMatchObject({ seconds: 0n, nanos: 1_500_000 });
    expect(durationOf(999.9999999)).toMatchObject({ seconds: 0n, nanos: 999_999_999 });
  });
});

describe("timestamps", () => {
  it("come back as they went, before the epoch too", () => {
    fc.assert(
      fc.property(fc.integer({ min: -62_135_596_800_000, max: 253_402_300_799_999 }), (ms) => {
        const timestamp = timestampOf(ms);
        expect(timestamp.nanos).toBeGreaterThanOrEqual(0);
        expect(timestampMs(timestamp)).toBe(ms);
      }),
    );
  });
});
