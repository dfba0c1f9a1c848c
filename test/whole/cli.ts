import { execFile } from "node:child_process";
import { dirname, join } from "node:path";

const root = dirname(dirname(import.meta.dirname));

export interface CliResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the command-line client against `target`, in `cwd`. */
export function holdfast(
  target: string,
  argv: readonly string[],
  options: { readonly cwd?: string; readonly input?: string } = {},
) {
  return new Promise<CliResult>((resolve) => {
    const main = join(root, "services/cli/src/main.ts");
    const child = execFile(
      process.execPath,
      ["--disable-warning=ExperimentalWarning", main, ...argv],
      {
        cwd: options.cwd,
        timeout: 60_000,
        maxBuffer: 256 * 1024 * 1024,
        env: { ...process.env, HOLDFAST_SERVER: target },
      },
      (error, stdout, stderr) => {
        resolve({ code: error ? (typeof error.code === "number" ? error.code : -1) : 0, stdout, stderr });
      },
    );
    child.stdin?.end(options.input ?? "");
  });
}
