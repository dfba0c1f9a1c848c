import type { ConformanceCase, Part } from "./conformance-case.ts";
import { Stage, type StageOptions } from "./stage.ts";
import type { Transcript } from "./transcript.ts";

export type Outcome =
  | { readonly t: "passed"; readonly transcript: Transcript; readonly ms: number }
  | { readonly t: "failed"; readonly error: unknown; readonly transcript: Transcript; readonly ms: number }
  | { readonly t: "skipped"; readonly lacking: readonly Part[] };

/** Runs one case on a stage of its own and tidies up after it. */
export async function runCase(
  wanted: ConformanceCase,
  parts: ReadonlySet<Part>,
  options: StageOptions,
): Promise<Outcome> {
  const lacking = (wanted.needs ?? []).filter((part) => !parts.has(part));
  if (lacking.length > 0) return { t: "skipped", lacking };
  const stage = new Stage(options);
  const started = performance.now();
  const errors: unknown[] = [];
  await wanted.run(stage).catch((error: unknown) => errors.push(error));
  const ms = performance.now() - started;
  await stage.close().catch((error: unknown) => errors.push(error));
  const { transcript } = stage;
  return errors.length === 0 ? { t: "passed", transcript, ms } : { t: "failed", error: errors[0], transcript, ms };
}
