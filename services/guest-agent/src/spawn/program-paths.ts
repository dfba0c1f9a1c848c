import { statSync } from "node:fs";
import { resolve } from "node:path";

/** What execvp does without a PATH. */
const pathDefault = "/bin:/usr/bin";

/**
 * Where a program may be, in the order in which execvp would try: what does not exist is left out, so that looking costs no process. A
 * command with a slash is itself the path, relative to `cwd`.
 */
export function programPaths(command: string, path: string | undefined, cwd: string): readonly string[] {
  if (command.includes("/")) return [command];
  return (path ?? pathDefault)
    .split(":")
    .map((directory) => `${directory === "" ? "." : directory}/${command}`)
    .filter((candidate) => mayExist(resolve(cwd, candidate)));
}

function mayExist(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    // A directory that cannot be looked into hides the program from execvp as well; anything else is the kernel's to say.
    return !(error instanceof Error && "code" in error && error.code === "ENOTDIR");
  }
}
