const rfc3339 = /^(?!0000)\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/;

/** The last moment that RFC 3339, and a Timestamp on the wire, can write. */
export const latestStampMs = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** The time of a stamp on an object, in milliseconds since the epoch; undefined for a text that is no time of this contract. */
export function stampTimeMs(text: string): number | undefined {
  const ms = rfc3339.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(ms) || ms > latestStampMs || ms < earliestStampMs ? undefined : ms;
}

const earliestStampMs = Date.parse("0001-01-01T00:00:00Z");
