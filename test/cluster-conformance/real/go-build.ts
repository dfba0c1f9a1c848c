import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";

export interface BuildOptions {
  /** Ends the build; what was compiled stays in the Go tool's own cache, so that the next one goes on from there. */
  readonly signal: AbortSignal;
  readonly say: (line: string) => void;
  /** Between two lines of progress. Default one minute. */
  readonly tellEveryMs?: number;
}

/** `go build`, which says nothing for minutes, with a line of progress now and then. Rejects with the last it said when it fails. */
export async function goBuild(go: string, argv: readonly string[], cwd: string, options: BuildOptions): Promise<void> {
  options.signal.throwIfAborted();
  // -v names each package once it is compiled, and each module that is fetched.
  const child = spawn(go, ["build", "-v", ...argv], {
    cwd,
    env: { ...process.env, CGO_ENABLED: "0", GOWORK: "off" },
    stdio: ["ignore", "ignore", "pipe"],
    detached: true, // a group of its own: its compilers end with it
  });
  const stop = () => endGroup(child);
  options.signal.addEventListener("abort", stop, { once: true });
  const said: string[] = [];
  const progress = { packages: 0, modules: 0 };
  createInterface({ input: child.stderr }).on("line", (line) => {
    if (line.startsWith("go: downloading ")) progress.modules += 1;
    else progress.packages += 1;
    if (said.push(line) > 40) said.shift();
  });
  const began = performance.now();
  const tell = setInterval(() => {
    const minutes = ((performance.now() - began) / 60_000).toFixed(0);
    const last = said.at(-1) ?? "nothing said yet";
    options.say(
      `building for ${minutes} min: ${progress.modules} modules, ${progress.packages} packages; last: ${last}`,
    );
  }, options.tellEveryMs ?? 60_000);
  try {
    const code = await new Promise((resolve, reject) => child.once("error", reject).once("close", resolve));
    options.signal.throwIfAborted();
    if (code !== 0) throw new Error(`go build ended with ${code}: ${said.join("\n")}`);
  } finally {
    clearInterval(tell);
    options.signal.removeEventListener("abort", stop);
  }
}

function endGroup(child: ChildProcess): void {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  process.kill(-child.pid, "SIGKILL");
}
