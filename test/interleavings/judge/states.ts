import { isStopped } from "../world/facts.ts";
import type { Judged } from "./judged.ts";
import type { Violation } from "./violation.ts";

/** L2, L25: a handle says `suspended` only of what its own reads showed: suspended, and its pods gone. */
export function* states({ states: seen, history, revisionSlack }: Judged): Iterable<Violation> {
  for (const { replica, fromRevision, toRevision } of seen.suspended) {
    if (history.between(fromRevision, toRevision + revisionSlack).some(isStopped)) continue;
    yield {
      promise: "suspended only when its pods are gone",
      what: `a handle of replica ${replica} said so between ${fromRevision} and ${toRevision}`,
    };
  }
}
