import { execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { lstat, mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { holdfast as runCli } from "./cli.ts";
import { dataFolder, startService } from "./harness.ts";

const root = join(import.meta.dirname, "../..");

describe("the command-line client", () => {
  let folder: Awaited<ReturnType<typeof dataFolder>>;
  let work: Awaited<ReturnType<typeof dataFolder>>;
  let service: Awaited<ReturnType<typeof startService>>;
  const holdfast = (argv: readonly string[], input?: string) =>
    runCli(service.target, argv, { cwd: work.path, ...(input === undefined ? {} : { input }) });

  const interruptible = (argv: readonly string[]) =>
    spawn(process.execPath, [join(root, "services/cli/src/main.ts"), ...argv], {
      env: { ...process.env, HOLDFAST_SERVER: service.target },
      stdio: ["pipe", "ignore", "inherit"],
    });

  beforeAll(async () => {
    folder = await dataFolder();
    work = await dataFolder();
    service = await startService(folder.path);
    expect(await holdfast(["open", "box"])).toMatchObject({ code: 0, stdout: expect.stringContaining("box created") });
  });
  afterAll(async () => {
    await service.stop();
    await folder[Symbol.asyncDispose]();
    await work[Symbol.asyncDispose]();
  });

  it("passes a command's output and its exit code through, and a signal as a shell does", async () => {
    const ran = await holdfast(["exec", "box", "--", "sh", "-c", "echo out; echo err >&2; exit 7"]);
    expect(ran).toEqual({ code: 7, stdout: "out\n", stderr: "err\n" });
    expect((await holdfast(["exec", "box", "sh", "-c", "kill -9 $$"])).code).toBe(137);
    expect((await holdfast(["exec", "box", "no-such-program"])).code).toBe(127);
  });

  it("gives a command its input, environment and directory", async () => {
    const line = 'cat; echo "$GREETING"; pwd';
    const argv = ["exec", "--stdin", "--env", "GREETING=hello there", "--cwd", "/workspace", "box", "sh", "-c", line];
    expect(await holdfast(argv, "typed\n")).toMatchObject({ code: 0, stdout: "typed\nhello there\n/workspace\n" });
  });

  it("L20 acts as the holder of --holder-epoch, and not as a superseded one; a number that is none is a wrong command line", async () => {
    const as = (epoch: number | string, ...argv: string[]) => {
      const [verb = "", ...rest] = argv;
      return holdfast([verb, "--holder-epoch", String(epoch), ...rest]);
    };
    expect((await as(7, "open", "held")).code).toBe(0);
    expect(await as(7, "exec", "held", "true")).toMatchObject({ code: 0 });
    await writeFile(join(work.path, "held.txt"), "held");
    expect(await as(7, "cp", "held.txt", "held:held.txt")).toMatchObject({ code: 0 });
    expect(await as(7, "sh", "held", "--", "sh", "-c", "exit 9")).toMatchObject({ code: 9 });
    const verbs = [
      ["open", "held"],
      ["exec", "held", "true"],
      ["sh", "held", "--", "true"],
      ["cp", "held.txt", "held:held.txt"],
      ["suspend", "held"],
      ["rm", "held:held.txt"],
      ["rm", "held", "--delete-disk"],
    ];
    for (const argv of verbs) {
      expect((await as(6, ...argv)).stderr, argv.join(" ")).toContain("HOLDER_EPOCH_SUPERSEDED");
      expect((await holdfast(argv)).stderr, argv.join(" ")).toContain("HOLDER_EPOCH_REQUIRED");
    }
    expect((await as(8, "suspend", "held")).code).toBe(0);
    expect((await as(7, "resume", "held")).stderr).toContain("HOLDER_EPOCH_SUPERSEDED");
    expect((await as(8, "rm", "held", "--delete-disk")).code).toBe(0);
    for (const wrong of ["", "-1", "1.5", "0x1", "9007199254740992", "all"])
      expect(await as(wrong, "suspend", "held"), wrong).toMatchObject({
        code: 2,
        stderr: expect.stringContaining("whole number"),
      });
  });

  it("exits with 125 when the call itself fails, naming the reason", async () => {
    const failed = await holdfast(["exec", "absent", "true"]);
    expect(failed.code).toBe(125);
    expect(failed.stderr).toMatch(/^holdfast: WORKSPACE_NOT_FOUND: /);
  });

  it("copies a file in and out, byte for byte, with its mode, replacing what stood there", async () => {
    const content = randomBytes(3_000_001);
    await writeFile(join(work.path, "in.bin"), content, { mode: 0o750 });
    expect(await holdfast(["cp", "in.bin", "box:deep/down/copy.bin"])).toEqual({ code: 0, stdout: "", stderr: "" });
    await writeFile(join(work.path, "out.bin"), "old");
    expect((await holdfast(["cp", "box:deep/down/copy.bin", "out.bin"])).code).toBe(0);
    expect((await readFile(join(work.path, "out.bin"))).equals(content)).toBe(true);
    expect((await stat(join(work.path, "out.bin"))).mode & 0o777).toBe(0o750);
    expect((await holdfast(["cp", "box:deep/down/copy.bin", "-"])).code).toBe(0);
  });

  it("copies through the standard streams and into a folder that stands", async () => {
    expect((await holdfast(["cp", "-", "box:streamed"], "from a pipe\n")).code).toBe(0);
    expect(await holdfast(["cp", "box:streamed", "-"])).toMatchObject({ code: 0, stdout: "from a pipe\n" });
    await mkdir(join(work.path, "folder"));
    expect((await holdfast(["cp", "box:streamed", "folder"])).code).toBe(0);
    expect(await readFile(join(work.path, "folder/streamed"), "utf8")).toBe("from a pipe\n");
  });

  it("copies a tree when it is asked to, and refuses it otherwise", async () => {
    await mkdir(join(work.path, "tree/sub"), { recursive: true });
    await writeFile(join(work.path, "tree/a"), "a");
    await writeFile(join(work.path, "tree/sub/b"), "b");
    const refused = await holdfast(["cp", "tree", "box:tree"]);
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining("--recursive") });
    expect((await holdfast(["cp", "-r", "tree", "box:tree"])).code).toBe(0);
    expect((await holdfast(["cp", "-r", "box:tree", "back"])).code).toBe(0);
    expect((await readdir(join(work.path, "back"), { recursive: true })).sort()).toEqual(["a", "sub", "sub/b"]);
  });

  it("copies into a device, a pipe and through a link, and puts no file in their place", async () => {
    await holdfast(["exec", "box", "sh", "-c", "printf new > f"]);
    const at = (name: string) => join(work.path, name);
    await promisify(execFile)("mknod", [at("null"), "c", "1", "3"]);
    await writeFile(at("real"), "old");
    await symlink("real", at("link"));
    for (const name of ["null", "link"]) expect((await holdfast(["cp", "box:f", name])).code, name).toBe(0);
    expect((await stat(at("null"))).isCharacterDevice()).toBe(true);
    expect((await lstat(at("link"))).isSymbolicLink()).toBe(true);
    expect(await readFile(at("real"), "utf8")).toBe("new");
    await promisify(execFile)("mkfifo", [at("fifo")]);
    const [copied, got] = await Promise.all([holdfast(["cp", "box:f", "fifo"]), readFile(at("fifo"), "utf8")]);
    expect([copied.code, got]).toEqual([0, "new"]);
  });

  it("takes no set-id bits from a workspace, names of any length, and no control characters to the terminal", async () => {
    const long = "n".repeat(255);
    const bell = "\u001b]0;\u009b2J";
    const made = `cd hostile && touch ${long} set '${bell}' && chmod 4755 set`;
    expect((await holdfast(["exec", "box", "sh", "-c", `mkdir -p hostile; ${made}`])).code).toBe(0);
    expect(await holdfast(["cp", "-r", "box:hostile", "hostile"])).toMatchObject({ code: 0, stderr: "" });
    expect((await readdir(join(work.path, "hostile"))).sort()).toEqual([bell, long, "set"].sort());
    expect((await stat(join(work.path, "hostile/set"))).mode & 0o7777).toBe(0o755);
    await mkdir(join(work.path, "hostile/hostile", bell), { recursive: true }); // Cannot be replaced by the file.
    const failed = await holdfast(["cp", "-r", "box:hostile", "hostile"]);
    expect(failed).toMatchObject({ code: 1, stderr: expect.stringContaining("is a directory") });
    expect(failed.stderr.trim()).not.toMatch(/\p{Cc}/u);
  });

  it("says by name and by its exit code what a copy of a tree leaves out, and copies the rest", async () => {
    await mkdir(join(work.path, "linked"));
    await writeFile(join(work.path, "linked/file"), "kept");
    await symlink("file", join(work.path, "linked/link"));
    const copied = await holdfast(["cp", "-r", "linked", "box:linked"]);
    expect(copied).toMatchObject({ code: 1, stderr: expect.stringContaining("left out") });
    expect(copied.stderr).toContain("linked/link");
    expect(await holdfast(["cp", "box:linked/file", "-"])).toMatchObject({ code: 0, stdout: "kept" });
  });

  it("leaves nothing on this side when a copy fails", async () => {
    const failed = await holdfast(["cp", "box:not-there", "never"]);
    expect(failed).toMatchObject({ code: 1, stderr: expect.stringContaining("FILE_NOT_FOUND") });
    expect((await readdir(work.path)).filter((name) => name.startsWith("never"))).toEqual([]);
  });

  it("lists files and workspaces for people and for programs", async () => {
    await holdfast(["exec", "box", "sh", "-c", "mkdir -p listed; echo 12345 > listed/five; ln -s five listed/link"]);
    const files = await holdfast(["ls", "box:listed"]);
    expect(files.stdout).toMatch(/^- 0\d{3} +6 .* five\nl .* link -> five\n$/);
    const rows = (await holdfast(["--json", "ls", "box:listed"])).stdout.trim().split("\n");
    expect(rows.map((row) => JSON.parse(row).path)).toEqual(["listed/five", "listed/link"]);
    expect((await holdfast(["list"])).stdout).toMatch(/WORKSPACE.*\nbox +running +default/);
    expect(JSON.parse((await holdfast(["--json", "list", "--prefix", "bo"])).stdout)).toMatchObject({
      workspaceId: "box",
    });
  });

  it("suspends and resumes, and removes a disk only when it is asked for by name", async () => {
    await holdfast(["open", "other"]);
    expect((await holdfast(["suspend", "other"])).stdout).toMatch(/other is suspended/);
    expect((await holdfast(["resume", "other"])).stdout).toMatch(/other runs/);
    expect(await holdfast(["rm", "other"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--delete-disk"),
    });
    expect((await holdfast(["list"])).stdout).toContain("other");
    expect((await holdfast(["rm", "other", "--delete-disk"])).code).toBe(0);
    expect((await holdfast(["list"])).stdout).not.toContain("other");
    await holdfast(["exec", "box", "touch", "gone"]);
    expect((await holdfast(["rm", "box:gone"])).code).toBe(0);
    expect((await holdfast(["rm", "box:gone"])).stderr).toContain("FILE_NOT_FOUND");
  });

  it("says that there was nothing to remove, instead of that it is gone", async () => {
    const removed = await holdfast(["rm", "mistyped", "--delete-disk"]);
    expect(removed).toEqual({ code: 0, stdout: "there was no workspace mistyped\n", stderr: "" });
  });

  it("refuses an option of exec where the command should be, and takes --json after a command's name", async () => {
    expect(await holdfast(["exec", "box", "--cwd", "x", "--", "pwd"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("before the workspace"),
    });
    expect(JSON.parse((await holdfast(["list", "--json", "--prefix", "box"])).stdout)).toMatchObject({
      workspaceId: "box",
    });
    expect((await holdfast(["--version"])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  it("leaves nothing behind when Ctrl-C arrives twice, as it does under a launcher", async () => {
    await holdfast(["exec", "box", "truncate", "-s", "8G", "endless"]);
    const into = join(work.path, "interrupted");
    await mkdir(into);
    const child = interruptible(["cp", "box:endless", into]);
    await vi.waitFor(async () => expect(await readdir(into)).toHaveLength(1), { timeout: 20_000 });
    child.kill("SIGINT");
    child.kill("SIGINT");
    expect(await once(child, "exit")).toEqual([130, null]);
    expect(await readdir(into)).toEqual([]);
    await holdfast(["rm", "box:endless"]);
  });

  it("ends at one Ctrl-C while it waits for its standard input", async () => {
    const child = interruptible(["exec", "--stdin", "box", "cat"]);
    // More than the pipe holds: that it is written means that it is being read.
    await new Promise((written) => child.stdin.write(Buffer.alloc(1024 * 1024), written));
    child.kill("SIGINT");
    expect(await once(child, "exit")).toEqual([130, null]);
  });

  it("says one line when no service listens", async () => {
    const failed = await runCli("127.0.0.1:9", ["list"]);
    expect(failed).toMatchObject({ code: 1, stderr: expect.stringContaining("the service was not reached") });
    expect(failed.stderr.trim().split("\n")).toHaveLength(1);
  });
});
