/** A place where the embedded cluster knowingly answers otherwise than the recorded one, and why that is right. */
export interface KnownDifference {
  /** The id of a case. */
  readonly case: string;
  readonly step: string;
  /** The place and everything below it. */
  readonly path: string;
  readonly reason: string;
}

const served = "The media types that it names are those that are served here.";

export const knownDifferences: readonly KnownDifference[] = [
  { case: "merge-patch/media-types", step: "strategic on a custom resource", path: "body/message", reason: served },
  { case: "merge-patch/media-types", step: "json", path: "body/message", reason: served },
  { case: "merge-patch/not-acceptable", step: "get", path: "body/message", reason: served },
  {
    case: "merge-patch/unreadable-body",
    step: "version",
    path: "warning",
    reason: "A version that is not served is refused before its members are looked at.",
  },
];
