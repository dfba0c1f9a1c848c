import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

let folder: string;
let runner: ChildProcess | undefined;
/** What a failed test leaves. */
let kept: number | undefined;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "holdfast-kept-"));
});
afterEach(async () => {
  runner?.kill("SIGKILL");
  if (kept !== undefined && (await lives(kept))) process.kill(kept, "SIGKILL");
  kept = undefined;
  await rm(folder, { recursive: true, force: true });
});

const keptProcess = join(import.meta.dirname, "kept-process.ts");
const server = "trap '' TERM; echo $$; while :; do sleep 1; done";

/** Runs a program of ours that keeps a server which ignores SIGTERM; resolves with the server's pid. */
async function startRunner(source: string): Promise<number> {
  const log = join(folder, "server.log");
  const program = `import { keepProcess, runKept } from ${JSON.stringify(keptProcess)};
    const argv = ["-c", ${JSON.stringify(server)}];
    ${source.replaceAll("LOG", JSON.stringify(log))}`;
  runner = spawn(process.execPath, ["--input-type=module-typescript", "-e", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let said = "";
  runner.stdout?.on("data", (chunk: Buffer) => {
    said += chunk.toString();
  });
  const told = async (): Promise<string> => said + (existsSync(log) ? await readFile(log, "utf8") : "");
  await expect.poll(told, patience).toMatch(/^\d+\n/);
  kept = Number.parseInt(await told(), 10);
  return kept;
}

/** A zombie has ended: it only waits for the machine's init to take note. */
async function lives(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => undefined); // gone
  return stat !== undefined && !/\) Z /.test(stat);
}

/** A busy machine is late, not wrong. */
const patience = { timeout: 15_000 };

describe("a program that is kept", () => {
  it.each([
    ["a server", 'keepProcess("server", "sh", argv, LOG); setInterval(() => 0, 1e9);'],
    ["a step", 'await runKept("sh", argv, new AbortController().signal);'],
  ])("dies with the process that started it, SIGKILL included: %s", async (_, source) => {
    const pid = await startRunner(source);
    expect(await lives(pid)).toBe(true);
    runner?.kill("SIGKILL");
    await expect.poll(() => lives(pid), patience).toBe(false);
  });

  it("that ends by itself is said with the place of its output", async () => {
    const log = join(folder, "log");
    const { keepProcess } = await import("./kept-process.ts");
    const ended = keepProcess("the server", "sh", ["-c", "echo why; exit 3"], log);
    await expect(ended.failed).rejects.toThrow(`the server ended with 3; its output is in ${log}`);
    await ended.stop();
    await expect.poll(() => readFile(log, "utf8"), patience).toBe("why\n");
  });
});

describe("what a run started, at whatever remove,", () => {
  it("is ended once the run is over, SIGKILL included, though it left its parents and groups", async () => {
    const pidFile = join(folder, "pid");
    await mkdir(join(folder, "of-the-run"));
    const program = `import { markRun } from ${JSON.stringify(join(import.meta.dirname, "run-mark.ts"))};
      import { spawn } from "node:child_process";
      const env = { ...process.env, ...markRun(${JSON.stringify(join(folder, "of-the-run"))}) };
      const line = "echo $$ > ${pidFile}.new; mv ${pidFile}.new ${pidFile}; trap '' TERM; while :; do sleep 1; done";
      spawn("setsid", ["--fork", "sh", "-c", line], { env, stdio: "ignore" });
      setInterval(() => 0, 1e9);`;
    runner = spawn(process.execPath, ["--input-type=module-typescript", "-e", program], { stdio: "inherit" });
    await expect.poll(() => existsSync(pidFile), patience).toBe(true);
    kept = Number.parseInt(await readFile(pidFile, "utf8"), 10);
    expect(await lives(kept)).toBe(true);
    runner.kill("SIGKILL");
    await expect.poll(() => lives(kept ?? 0), patience).toBe(false);
    await expect.poll(() => readdir(folder), patience).toEqual(["pid"]);
  });
});

describe("test:cluster", () => {
  it("says that it was skipped where there is no Go, and exits with 0", async () => {
    const env = { ...process.env, XDG_CACHE_HOME: folder, HOLDFAST_GO: join(folder, "no-go") };
    const run = spawn(process.execPath, [join(import.meta.dirname, "run.ts")], {
      env,
      stdio: ["ignore", "pipe", "inherit"],
    });
    let said = "";
    run.stdout.on("data", (chunk: Buffer) => {
      said += chunk.toString();
    });
    expect((await once(run, "close"))[0]).toBe(0);
    expect(said).toBe(
      "test:cluster: skipped: Go is not installed, and the programs of a real cluster were not built before\n",
    );
  });
});
