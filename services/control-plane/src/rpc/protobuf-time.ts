import { create } from "@bufbuild/protobuf";
import { type Duration, DurationSchema, type Timestamp, TimestampSchema } from "@bufbuild/protobuf/wkt";

/** Whole milliseconds, rounded up: what is more than nothing never becomes 0, and nothing ends early. Exact to 2^53 ms. */
export function durationMs({ seconds, nanos }: Duration): number {
  return Number(seconds) * 1_000 + Math.ceil(nanos / 1_000_000);
}

/** Milliseconds, fractions included, as a duration. */
export function durationOf(ms: number): Duration {
  const wholeMs = Math.floor(ms);
  const nanos = (wholeMs % 1_000) * 1_000_000 + Math.floor((ms - wholeMs) * 1_000_000);
  return create(DurationSchema, { seconds: BigInt(Math.floor(wholeMs / 1_000)), nanos });
}

/** Milliseconds since the epoch, rounded up: "before" then takes in all that lies before. */
export function timestampMs({ seconds, nanos }: Timestamp): number {
  return Number(seconds) * 1_000 + Math.ceil(nanos / 1_000_000);
}

/** Milliseconds since the epoch as a timestamp. */
export function timestampOf(ms: number): Timestamp {
  const seconds = Math.floor(ms / 1_000);
  return create(TimestampSchema, { seconds: BigInt(seconds), nanos: Math.floor(ms - seconds * 1_000) * 1_000_000 });
}
