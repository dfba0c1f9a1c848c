// Runs one step of a task: a program that shares our terminal.
import { spawn } from "node:child_process";

/** How long a test run may take to exit after it has told its verdict. */
const exitMs = 60_000;

/**
 * Resolves with the program's exit code. Signals are passed on; the program decides when to end.
 *
 * A step with `tellsVerdict` writes "passed" or "failed" to its descriptor 3 when its work is done (tools/closing-line-reporter.ts). One that
 * does not exit after that (something native that holds its process) is ended, and its verdict stands: no run hangs once all is told.
 */
export function runStep({ file, argv, env, cwd, quiet, tellsVerdict }, patienceMs = exitMs) {
  // Tasks run where the user stands, so that a relative --data-dir means what it says.
  const child = spawn(file, argv, {
    stdio: ["inherit", quiet ? "ignore" : "inherit", "inherit", ...(tellsVerdict ? ["pipe"] : [])],
    env: tellsVerdict ? { ...env, HOLDFAST_VERDICT_FD: "3" } : env,
    cwd,
  });
  const pass = (signal) => child.kill(signal);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, pass);
  let verdict = "";
  let impatience;
  child.stdio[3]?.setEncoding("utf8").on("data", (text) => {
    verdict += text;
    impatience ??= setTimeout(() => {
      console.error(
        `holdfast: ${file} told "${verdict.trim()}" and did not exit for ${patienceMs / 1000} s: it is ended`,
      );
      child.kill("SIGKILL");
    }, patienceMs);
  });
  return new Promise((resolve) => {
    const done = (code) => {
      clearTimeout(impatience);
      child.stdio[3]?.destroy();
      for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.off(signal, pass);
      resolve(code);
    };
    child.on("error", (error) => {
      console.error(`holdfast: ${file}: ${error.message}`);
      done(1);
    });
    child.on("exit", (code, signal) => {
      if (signal === "SIGKILL" && verdict !== "") return done(verdict === "passed\n" ? 0 : 1);
      done(code ?? 128 + (signal === "SIGKILL" ? 9 : signal === "SIGTERM" ? 15 : 2));
    });
  });
}
