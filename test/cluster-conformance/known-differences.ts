/** A place where the embedded cluster knowingly answers otherwise than the recorded one, and why that is right. */
export interface KnownDifference {
  /** The id of a case. */
  readonly case: string;
  readonly step: string;
  /** The place and everything below it. */
  readonly path: string;
  readonly reason: string;
}

export const knownDifferences: readonly KnownDifference[] = [];
