import { isDeepStrictEqual } from "node:util";
import { isObject, type Json } from "./json.ts";
import type { Transcript } from "./transcript.ts";

/** One place where two transcripts of a case differ. */
export interface Difference {
  readonly step: string;
  /** Members and indices joined by "/", from the recorded value down. */
  readonly path: string;
  readonly recorded: Json | undefined;
  readonly seen: Json | undefined;
}

/** Every place where what was seen differs from what was recorded. */
export function differences(recorded: Transcript, seen: Transcript): Difference[] {
  const found: Difference[] = [];
  for (let index = 0; index < Math.max(recorded.length, seen.length); index++) {
    const [wanted, got] = [recorded[index], seen[index]];
    const step = wanted?.step ?? got?.step ?? "";
    if (wanted?.step !== got?.step) {
      found.push({ step, path: "", recorded: wanted?.step ?? "no step", seen: got?.step ?? "no step" });
      continue;
    }
    descend(wanted?.seen, got?.seen, [], (path, a, b) =>
      found.push({ step, path: path.join("/"), recorded: a, seen: b }),
    );
  }
  return found;
}

type Report = (path: readonly string[], recorded: Json | undefined, seen: Json | undefined) => void;

function descend(a: Json | undefined, b: Json | undefined, path: readonly string[], report: Report): void {
  if (isDeepStrictEqual(a, b)) return;
  if (isObject(a) && isObject(b)) {
    for (const member of new Set([...Object.keys(a), ...Object.keys(b)])) {
      descend(a[member], b[member], [...path, member], report);
    }
  } else if (Array.isArray(a) && Array.isArray(b) && a.length === b.length) {
    for (const [index, item] of a.entries()) descend(item, b[index], [...path, `${index}`], report);
  } else report(path, a, b);
}

export function describeDifference({ step, path, recorded, seen }: Difference): string {
  return `  step "${step}" at ${path === "" ? "/" : path}\n    recorded: ${JSON.stringify(recorded)}\n    seen:     ${JSON.stringify(seen)}`;
}

/** Tells whether a difference is at a place or below it. */
export function isUnder(difference: Difference, place: { readonly step: string; readonly path: string }): boolean {
  if (difference.step !== place.step) return false;
  return place.path === "" || `${difference.path}/`.startsWith(`${place.path}/`);
}
