import { CommanderError } from "commander";
import { exitCodeOf, wordsOf } from "./failure.ts";
import { programOf } from "./program.ts";

const interrupted = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => interrupted.abort());
// A reader that went away (`holdfast exec … | head`) is the end of the work, not a failure of it.
process.stdout.on("error", () => interrupted.abort());

try {
  await programOf(interrupted.signal).parseAsync(process.argv);
} catch (error) {
  // Commander has said what was wrong with the command line already.
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2;
  else {
    if (!interrupted.signal.aborted) console.error(`holdfast: ${wordsOf(error)}`);
    process.exitCode = interrupted.signal.aborted ? 130 : exitCodeOf(error);
  }
}
