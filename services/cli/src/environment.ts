import { UsageError } from "./failure.ts";

/** Reads `NAME=VALUE` pairs. */
export function environmentOf(pairs: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const equals = pair.indexOf("=");
      if (equals <= 0) throw new UsageError(`--env takes NAME=VALUE; it is "${pair}"`);
      return [pair.slice(0, equals), pair.slice(equals + 1)];
    }),
  );
}
