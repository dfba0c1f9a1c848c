import { spawn } from "node:child_process";
import { join } from "node:path";
import { type Guard, guards } from "./guards.ts";

/** How a run without a guard ended. */
export interface WithoutGuard {
  readonly guard: string;
  /** It failed by a broken promise. */
  readonly missed: boolean;
  /** The line that says so, or all that was said where none does. */
  readonly words: string;
}

/** Runs the check with one guard taken out of the product, until it fails. */
export async function runWithout({ name }: Guard, options: readonly string[]): Promise<WithoutGuard> {
  const here = import.meta.dirname;
  const run = spawn(
    process.execPath,
    ["--import", join(here, "remove-guard.ts"), join(here, "run.ts"), "--first-only", ...options],
    { env: { ...process.env, HOLDFAST_WITHOUT_GUARD: name }, stdio: ["ignore", "pipe", "pipe"] },
  );
  let output = "";
  const take = (chunk: Buffer): void => {
    output += String(chunk);
  };
  run.stdout.on("data", take);
  run.stderr.on("data", take);
  const code = await new Promise<number | null>((resolve) => run.on("close", resolve));
  const line = output.split("\n").find((one) => one.startsWith("broken: "));
  return { guard: name, missed: code === 1 && line !== undefined, words: line ?? output };
}

/** All of them, one after another. False: one was not missed. */
export async function allMissed(options: readonly string[]): Promise<boolean> {
  let all = true;
  for (const guard of guards) {
    const { missed, words } = await runWithout(guard, options);
    console.log(`without ${guard.name}: ${missed ? words : `NOT MISSED\n${words}`}`);
    all &&= missed;
  }
  return all;
}
