import { execFileSync } from "node:child_process";

/**
 * Has this program's terminal pass on what is typed, and show what is written, unchanged. Node's raw mode alone still turns each line
 * feed into two characters, which full-screen programs do not mean. Undone by `setRawMode(false)`, and by Node at its exit.
 */
export function beginRawMode(): void {
  process.stdin.setRawMode(true);
  try {
    execFileSync("stty", ["-opost"], { stdio: ["inherit", "ignore", "ignore"] });
  } catch {
    // A machine without stty: lines are shown well, and only some full-screen programs are not.
  }
}
