import {
  chmodSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { addon, startThread } from "../testing/addon.testing.ts";
import { FifoPipes } from "./fifo-pipes.ts";
import { NodeSpawner } from "./node-spawner.ts";
import { choosePipes, type Pipes } from "./pipes.ts";
import { waitCallsOf } from "./posix-calls.ts";
import { PosixSpawner } from "./posix-spawner.ts";
import { Reaper } from "./reaper.ts";
import type { ExitStatus, ProgramStart, Spawner } from "./spawner.ts";
import { ThreadSpawner } from "./thread-spawner.ts";

function directory(): string {
  const path = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-spawn-test-")));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

function executable(path: string, text: string, mode = 0o755): string {
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}

/** Descriptors of this process without the flag that closes them in other programs. */
function inheritable(): number[] {
  const closes = 0o2_000_000;
  return readdirSync("/proc/self/fdinfo")
    .filter((fd) => {
      try {
        const flags = /^flags:\s+(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "utf8"))?.[1] ?? "";
        return (Number.parseInt(flags, 8) & closes) === 0;
      } catch {
        return false; // Closed meanwhile.
      }
    })
    .map(Number);
}

/** All ways of starting programs keep the same promises. */
const ways: readonly [string, () => Promise<{ spawner: Spawner; pipes: (path: string) => Pipes }>][] = [
  [
    "posix_spawn",
    async () => {
      const koffi = await addon();
      return { spawner: new PosixSpawner(koffi), pipes: (path) => choosePipes(path, koffi) };
    },
  ],
  [
    "posix_spawn in a thread",
    async () => {
      const koffi = await addon();
      const spawner = new ThreadSpawner(new Reaper(waitCallsOf(koffi)), await startThread());
      return { spawner, pipes: (path) => choosePipes(path, koffi) };
    },
  ],
  ["Node", async () => ({ spawner: new NodeSpawner(), pipes: (path) => new FifoPipes(path) })],
];

describe.each(ways)("a program that is started by %s", (_, way) => {
  let spawner: Spawner;
  let pipesIn: (path: string) => Pipes;
  beforeAll(async () => {
    ({ spawner, pipes: pipesIn } = await way());
  });

  const env = { PATH: process.env.PATH ?? "" };

  /** Runs it to its end. */
  async function run(start: Partial<ProgramStart>): Promise<{ pid: number; status: ExitStatus; stdout: string }> {
    const cwd = start.cwd ?? directory();
    const [out] = await pipesIn(join(directory(), "pipes")).take(1);
    if (out === undefined) throw new Error("no pipe");
    const stdio = [undefined, out.writeFd, undefined] as const;
    let program: Awaited<ReturnType<Spawner["spawn"]>>;
    try {
      program = await spawner.spawn({ command: "sh", args: [], env, ...start, cwd, stdio });
    } catch (error) {
      closeSync(out.readFd);
      throw error;
    } finally {
      closeSync(out.writeFd);
    }
    let stdout = "";
    const reader = new Socket({ fd: out.readFd, readable: true, writable: false }).on("data", (bytes) => {
      stdout += bytes.toString("latin1");
    });
    const closed = new Promise((resolve) => reader.once("close", resolve));
    const status = await program.exited;
    await closed;
    return { pid: program.pid, status, stdout };
  }

  const sh = (script: string, more: Partial<ProgramStart> = {}) => run({ args: ["-c", script], ...more });
  const codeOf = (start: Partial<ProgramStart>) =>
    run(start).then(
      () => "started",
      (error) => error.code,
    );

  it("ends with its exit code or the name of its signal", async () => {
    for (const code of [0, 1, 7, 126, 127, 128, 255]) expect((await sh(`exit ${code}`)).status).toEqual({ code });
    for (const signal of ["HUP", "INT", "QUIT", "KILL", "TERM", "PIPE", "USR1"])
      expect((await sh(`kill -${signal} $$`)).status).toEqual({ signal: `SIG${signal}` });
  });

  it("B17 every one of many at once has its own end", async () => {
    const runs = await Promise.all(Array.from({ length: 60 }, (_, at) => sh(`sleep 0.0${at % 10}; exit ${at}`)));
    expect(runs.map(({ status }) => status)).toEqual(Array.from({ length: 60 }, (_, at) => ({ code: at })));
  });

  it("G9 is the leader of a kernel session and process group of its own, in its directory", async () => {
    const cwd = directory();
    const { pid, stdout } = await sh("pwd; cut -d' ' -f5,6 /proc/self/stat; cat /proc/$$/stat", { cwd });
    expect(stdout.startsWith(`${cwd}\n${pid} ${pid}\n${pid} `)).toBe(true);
  });

  it("inherits no descriptor, no ignored and no blocked signal", async () => {
    // What this process was given to pass on, as a shell's redirections, and what sh opens for itself.
    const expected = new Set([0, 1, 2, 10, 255, ...inheritable()]);
    const { stdout } = await sh("ls /proc/$$/fd; grep -E '^Sig(Blk|Ign)' /proc/self/status");
    const seen = stdout
      .split("\n")
      .filter((line) => /^\d+$/.test(line))
      .map(Number);
    expect(seen.filter((fd) => !expected.has(fd))).toEqual([]);
    for (const what of ["SigBlk", "SigIgn"]) {
      // Of those that programs use; the C library has two more for itself.
      const signals = BigInt(`0x${new RegExp(`^${what}:\\t(.*)$`, "m").exec(stdout)?.[1]}`) & 0x7fff_ffffn;
      expect(signals, what).toBe(0n);
    }
  });

  it("gets its arguments and environment as they are, and nothing else", async () => {
    const { stdout } = await run({
      command: "env",
      args: ["printf", "[%s]", "a b", "", "ü€😀", "*", "-n"],
      env: { ...env, ONE: "ü = 1", EMPTY: "" },
    });
    expect(Buffer.from(stdout, "latin1").toString()).toBe("[a b][][ü€😀][*][-n]");
    const { stdout: seen } = await run({ command: "env", env: { PATH: env.PATH, ONE: "a=b", EMPTY: "" } });
    expect(seen.split("\n").sort()).toEqual(["", "EMPTY=", "ONE=a=b", `PATH=${env.PATH}`]);
  });

  it("G13 a directory that went, or was replaced, is told from a program that is not there, and nothing starts elsewhere", async () => {
    const [top, elsewhere] = [directory(), directory()];
    const cwd = join(top, "below/here");
    expect(await codeOf({ cwd })).toBe("directory");
    mkdirSync(cwd, { recursive: true });
    expect(await codeOf({ cwd })).toBe("started");
    expect(await codeOf({ cwd, command: "holdfast-no-such-program" })).toBe("ENOENT");
    rmSync(join(top, "below"), { recursive: true });
    mkdirSync(join(elsewhere, "here"));
    symlinkSync(elsewhere, join(top, "below"));
    expect(await codeOf({ cwd })).toBe("directory");
    rmSync(join(top, "below"));
    executable(join(top, "below"), "no directory");
    expect(await codeOf({ cwd })).toBe("directory");
    expect(await codeOf({ cwd: join(top, "below") })).toBe("directory");
  });

  it("G13 says what the kernel says when it cannot be started", async () => {
    const cwd = directory();
    executable(join(cwd, "plain"), "#!/bin/sh\n", 0o644);
    executable(join(cwd, "lost-interpreter"), "#!/no/such/interpreter\n");
    expect(await codeOf({ command: "holdfast-no-such-program", cwd })).toBe("ENOENT");
    expect(await codeOf({ command: "./no-such-file", cwd })).toBe("ENOENT");
    expect(await codeOf({ command: "./lost-interpreter", cwd })).toBe("ENOENT");
    expect(await codeOf({ command: "./plain/x", cwd })).toBe("ENOTDIR");
    expect(await codeOf({ command: "./plain", cwd })).toBe("EACCES");
    expect(await codeOf({ command: "/", cwd })).toBe("EACCES");
    expect(await codeOf({ command: "plain", cwd, env: { PATH: cwd } })).toBe("EACCES");
    expect(await codeOf({ args: Array.from({ length: 40 }, () => "x".repeat(100_000)) })).toBe("E2BIG");
  });

  it("G13 is looked up in the PATH that it is given, as execvp does", async () => {
    const cwd = directory();
    for (const name of ["one", "two", "plain"]) mkdirSync(join(cwd, name));
    executable(join(cwd, "one/where"), "#!/bin/sh\necho one\n");
    executable(join(cwd, "two/where"), "#!/bin/sh\necho two\n");
    executable(join(cwd, "plain/where"), "not executable", 0o644);
    executable(join(cwd, "where"), "#!/bin/sh\necho here\n");
    mkdirSync(join(cwd, "directory/where"), { recursive: true });
    symlinkSync("nowhere", join(cwd, "plain/dangling"));
    const found = async (path: string) => (await run({ command: "where", cwd, env: { PATH: path } })).stdout;
    expect(await found(`${cwd}/one:${cwd}/two`)).toBe("one\n");
    expect(await found(`/no/such/directory:${cwd}/plain:${cwd}/where:${cwd}/directory:two`)).toBe("two\n");
    expect(await found("")).toBe("here\n");
    expect(await found(`${cwd}/plain:`)).toBe("here\n");
    expect(await codeOf({ command: "where", cwd, env: { PATH: `${cwd}/none:${cwd}/plain` } })).toBe("EACCES");
    expect(await codeOf({ command: "dangling", cwd, env: { PATH: `${cwd}/plain` } })).toBe("ENOENT");
  });

  it("a script without a first line that says what runs it is run by sh, as execvp does", async () => {
    const cwd = directory();
    executable(join(cwd, "bare"), 'echo "bare $0 $1"\n');
    expect((await run({ command: "./bare", args: ["x"], cwd })).stdout).toBe("bare ./bare x\n");
    expect((await run({ command: "bare", args: ["y"], cwd, env: { PATH: `${cwd}:/bin` } })).stdout).toBe(
      `bare ${cwd}/bare y\n`,
    );
  });
});

describe.each(ways)("pipes that are made for %s", (_, way) => {
  it("are real ones: they can be opened by name, and nothing of them is left in any program", async () => {
    const { spawner, pipes } = await way();
    const [one, other] = await pipes(join(directory(), "pipes")).take(2);
    if (one === undefined || other === undefined) throw new Error("no pipes");
    const program = await spawner.spawn({
      command: "sh",
      args: ["-c", "head -c 3 <&0 > /dev/stdout"],
      cwd: "/",
      env: { PATH: process.env.PATH ?? "" },
      stdio: [one.readFd, other.writeFd, undefined],
    });
    for (const fd of [one.readFd, other.writeFd]) closeSync(fd);
    const writer = new Socket({ fd: one.writeFd, readable: false, writable: true }).on("error", () => undefined);
    writer.write("abcdef");
    let text = "";
    const reader = new Socket({ fd: other.readFd, readable: true, writable: false }).on("data", (bytes) => {
      text += bytes;
    });
    await new Promise((resolve) => reader.once("close", resolve));
    writer.destroy();
    expect(text).toBe("abc");
    expect(await program.exited).toEqual({ code: 0 });
  });
});
