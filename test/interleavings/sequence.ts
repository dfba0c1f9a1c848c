import { judge } from "./judge/judge.ts";
import type { Violation } from "./judge/violation.ts";
import { Play } from "./play.ts";
import type { Sequence } from "./steps.ts";
import type { Tally } from "./tally.ts";
import type { CallRecord } from "./world/calls.ts";
import { isUp } from "./world/facts.ts";
import { World } from "./world/world.ts";

/** Told of what happens, for people. */
export type Tell = (world: World, text: string) => void;

/** Plays one sequence to its end and says what was wrong with it. */
export async function runSequence(
  { theme, prologue, steps }: Sequence,
  tally: Tally,
  tell: Tell = () => undefined,
): Promise<readonly Violation[]> {
  const world = await World.start(tell);
  try {
    const play = new Play(world, theme, tally);
    if (prologue !== "none") await play.ask("open", 0);
    if (prologue === "suspended") await play.ask("suspend", 0);
    for (const step of steps) await play.step(step);
    tally.takeMet();
    await play.heal();
    const violations = [...judge(world)];
    const unanswered = world.calls.filter(({ answer, isAbandoned }) => answer === undefined && !isAbandoned);
    for (const { id, verb } of unanswered) {
      violations.push({
        promise: "every call ends",
        what: `call ${id} (${verb}) did not, though all was well for minutes`,
      });
    }
    if (violations.length > 0) return violations;
    for (const which of ["some", "all"] as const) {
      await play.landLast(which);
      const violated = [...(await endsUsable(world, play)), ...judge(world)];
      if (violated.length > 0) return violated;
    }
    return [];
  } finally {
    await world.stop();
  }
}

/** No handle ends where no verb leads on: the newest holder gets a guest, by the ways out that the errors name. */
async function endsUsable(world: World, play: Play): Promise<readonly Violation[]> {
  const told: CallRecord[] = [];
  for (let tries = 0; tries < 4; tries += 1) {
    const call = await play.ask("take_over", 0);
    told.push(call);
    // The way out that the error names: to go on with the disk that stands.
    if (call.answer?.t === "error" && call.answer.reason === "WORKSPACE_REPLACED") play.acceptReplacedDisk();
    if (call.answer?.t !== "ok") continue;
    return isUp(world.history.now())
      ? []
      : [{ promise: "an Open leads on", what: "it was answered, and no pod is up" }];
  }
  const words = told.map(({ answer }) =>
    answer?.t === "error" ? `${answer.reason}: ${answer.error.message}` : "unanswered",
  );
  return [{ promise: "no handle ends where no verb leads on", what: words.join(" | ") }];
}
