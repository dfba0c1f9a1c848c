/**
 * True for a version that can be compared with others: API servers promise that those of one kind are growing integers. One that is
 * none is used as it was given, and never compared.
 */
export function isComparable(version: string): boolean {
  return /^(0|[1-9][0-9]{0,18})$/.test(version);
}

/** True when `one` is later than `other`. Of versions that cannot be compared each is later than the other. */
export function isAfter(one: string, other: string): boolean {
  if (!isComparable(one) || !isComparable(other)) return one !== other;
  return one.length === other.length ? one > other : one.length > other.length;
}
