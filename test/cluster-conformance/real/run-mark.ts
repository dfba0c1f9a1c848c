import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { join } from "node:path";

/** The variable by which everything that a run starts, at whatever remove, is known as its own. */
export const runMark = "HOLDFAST_TEST_RUN";

/** To be given to whatever the run starts. */
export type MarkedEnvironment = Readonly<Record<typeof runMark, string>>;

/** Starts the guardian of this process: when it is gone, in whatever way, its folder and all that carries the mark go too. */
export function markRun(folder: string): MarkedEnvironment {
  const mark = randomUUID();
  const guardian = spawn(process.execPath, [join(import.meta.dirname, "guardian.ts"), mark, folder], {
    stdio: ["pipe", "ignore", "inherit"],
    detached: true, // a group of its own: what ends this one must not end it
  });
  guardian.unref();
  guardian.stdin.on("error", () => undefined); // nothing is written to it
  if ("unref" in guardian.stdin && typeof guardian.stdin.unref === "function") guardian.stdin.unref();
  return { [runMark]: mark };
}
