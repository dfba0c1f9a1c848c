import type { MessageInitShape } from "@bufbuild/protobuf";
import { type DurationSchema, durationFromMs } from "@bufbuild/protobuf/wkt";

/** Seconds as a Duration. */
export function durationOf(seconds: number): MessageInitShape<typeof DurationSchema> {
  return durationFromMs(Math.round(seconds * 1000));
}
