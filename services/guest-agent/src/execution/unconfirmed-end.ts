import { leftoversNamedMax } from "@holdfast/contract";
import { AnsweredError } from "@holdfast/guest-link";
import type { Process } from "./processes.ts";

/** What was told to end. */
export interface ToldToEnd {
  readonly kind: "execution" | "session";
  readonly id: string;
}

/** A kill that the kernel has not carried out. */
export function survived(told: ToldToEnd, survivors: readonly Process[]): AnsweredError {
  const named = survivors.slice(0, leftoversNamedMax).map(({ pid, name }) => `${pid} (${name})`);
  const what = `and ${named.join(", ")} survived SIGKILL. What it did is not known; ask again.`;
  return unconfirmedEnd(told, what, { survivors: named.join(",") });
}

/** Nobody could look whether a kill was carried out. */
export function unseen(told: ToldToEnd, error: unknown): AnsweredError {
  const why = error instanceof Error ? error.message : String(error);
  const what = `and the guest could not look at its processes (${why}). Whether it runs is not known; ask again.`;
  return unconfirmedEnd(told, what, { cause: why });
}

/** It cannot be ended before the kernel has begun it. */
export function startHeld(told: ToldToEnd): AnsweredError {
  const what = "and its program is still being started: the kernel has not answered. It is ended as soon as it runs.";
  return unconfirmedEnd(told, what, { cause: "start-held" });
}

function unconfirmedEnd({ kind, id }: ToldToEnd, what: string, metadata: Record<string, string>): AnsweredError {
  const name = kind === "session" ? "Session" : "Execution";
  return new AnsweredError("CANCELLATION_UNCONFIRMED", `${name} ${id} was told to end, ${what}`, {
    [`${kind}_id`]: id,
    ...metadata,
  });
}
