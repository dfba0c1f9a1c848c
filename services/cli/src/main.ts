import { CommanderError } from "commander";
import { exitCodeOf, wordsOf } from "./failure.ts";
import { programOf } from "./program.ts";

const interrupted = new AbortController();
let interruptedAt = 0;
// The listener stays: a terminal's Ctrl-C arrives twice under a launcher, and the second must not end the tidying up after the first.
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    if (!interrupted.signal.aborted) interruptedAt = performance.now();
    else if (performance.now() - interruptedAt > 1_000) process.exit(130); // Asked again, by a person.
    interrupted.abort();
  });
}
// A reader that went away (`holdfast exec … | head`) is the end of the work, not a failure of it.
process.stdout.on("error", () => interrupted.abort());

try {
  await programOf(interrupted.signal).parseAsync(process.argv);
} catch (error) {
  // Commander has said what was wrong with the command line already.
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2;
  else {
    if (!interrupted.signal.aborted) console.error(`holdfast: ${wordsOf(error)}`);
    // A terminal that is still read from would keep the process.
    if (interrupted.signal.aborted) process.exit(130);
    process.exitCode = exitCodeOf(error);
  }
}
