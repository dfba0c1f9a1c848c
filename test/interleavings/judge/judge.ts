import { answers } from "./answers.ts";
import { effects } from "./effects.ts";
import type { Judged } from "./judged.ts";
import { states } from "./states.ts";
import type { Violation } from "./violation.ts";
import { writes } from "./writes.ts";

/** Judges all that happened in a world by the cluster's own log: who wrote what, for whom, and whether each answer was true. */
export function judge(world: Judged): readonly Violation[] {
  return [...writes(world), ...effects(world), ...states(world), ...answers(world)];
}
